import { IsInt, IsOptional, IsString } from 'class-validator';
import { fact } from './contract.js';
import { IsId, type UserId } from './ids.js';

/** An error of an account: an event on the `$errors` of an emitter, or a webhook that was disabled. */
export class ErrorRaised {
  /** The same when the fact is repeated. */
  @IsString() id!: string;
  @IsId('user') owner_id!: UserId;
  /** The source, workflow or webhook that failed. */
  @IsId('source', 'workflow', 'webhook') subject_id!: string;
  /** The error's `code`; `Error` if it has none. */
  @IsString() code!: string;
  /** One line for the mail. */
  @IsString() message!: string;
  /** The id of the event on `$errors`, if there is one. */
  @IsOptional() @IsString() event_id?: string;
  @IsInt() raised_at_ms!: number;
}
/** Key: the account. */
export const errorRaised = fact('routing.error.raised', ErrorRaised);
