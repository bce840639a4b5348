import { Type } from 'class-transformer';
import { IsArray, IsString, ValidateNested } from 'class-validator';
import { query } from './contract.js';
import { type EmitterId, IsId } from './ids.js';

/**
 * Identifies an emit that waits for its `delivery_ts`. The emit keeps one emit id: as the event that shows it on `$in`, as the waiting row
 * in the runtime, and as the event that it becomes.
 */
export class WaitingEmitKey {
  @IsId('source', 'workflow') emitter_id!: EmitterId;
  @IsString() emit_id!: string;
}

export class FindWithdrawnEmits {
  @IsArray() @ValidateNested({ each: true }) @Type(() => WaitingEmitKey) emits!: WaitingEmitKey[];
}
/** Returns the given emits whose event has been deleted from `$in`, as far as the store has read. They must not be emitted. */
export const findWithdrawnEmits = query<WaitingEmitKey[]>()('event-store.emit.find-withdrawn', FindWithdrawnEmits);
