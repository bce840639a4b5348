import { ApiProperty } from '@nestjs/swagger';
import { type FinishedRun, RUN_METHODS, RUN_RESULTS, RUN_TRIGGERS } from '#contracts';

class RunFailure {
  @ApiProperty({ example: 'TypeError' }) name!: string;
  @ApiProperty() message!: string;
  @ApiProperty({ description: 'The first 4000 characters; empty if there is none.' }) stack!: string;
}

/** A run that has ended, as the API returns it. */
export class Run implements FinishedRun {
  @ApiProperty({ description: 'The id that `runSource` returned.' }) id!: string;
  @ApiProperty({ enum: RUN_TRIGGERS, description: 'The cause of the run.' }) trigger!: FinishedRun['trigger'];
  @ApiProperty({ enum: RUN_METHODS, description: '`run`, or the hook that ran.' }) method!: FinishedRun['method'];
  @ApiProperty({ enum: RUN_RESULTS }) status!: FinishedRun['status'];
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Unix seconds.' }) started_at!: number;
  @ApiProperty({ type: 'integer' }) duration_ms!: number;
  @ApiProperty({ type: 'integer', description: 'How many events it emitted.' }) emitted!: number;
  @ApiProperty({ type: RunFailure, nullable: true, description: 'Why it failed or was skipped; null if it succeeded.' })
  error!: RunFailure | null;
}
