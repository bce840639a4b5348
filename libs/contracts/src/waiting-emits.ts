import { Type } from 'class-transformer';
import { IsArray, IsString, ValidateNested } from 'class-validator';
import { query } from './contract.js';
import { type EmitterId, IsId } from './ids.js';

/**
 * Names an emit that waits for its `delivery_ts`. It has one emit id all the way: as the event that shows it on `$in`, as what waits
 * in the runtime, and as the event that it becomes.
 */
export class WaitingEmitKey {
  @IsId('source', 'workflow') emitter_id!: EmitterId;
  @IsString() emit_id!: string;
}

export class FindWithdrawnEmits {
  @IsArray() @ValidateNested({ each: true }) @Type(() => WaitingEmitKey) emits!: WaitingEmitKey[];
}
/** Those of the emits whose event was deleted from `$in`, as far as the log is stored: they are not to be emitted. */
export const findWithdrawnEmits = query<WaitingEmitKey[]>()('event-store.emit.find-withdrawn', FindWithdrawnEmits);
