import { IsInt, IsOptional, IsString } from 'class-validator';
import { fact } from './contract.js';
import { IsId, type UserId } from './ids.js';

/** Something of an account has failed: an event on an emitter's `$errors`, or an endpoint that was switched off. */
export class ErrorRaised {
  /** The same when the fact comes twice. */
  @IsString() id!: string;
  @IsId('user') owner_id!: UserId;
  /** What failed: a source, a workflow, or the webhook whose endpoint was switched off. */
  @IsId('source', 'workflow', 'webhook') subject_id!: string;
  /** The error's `code`; `Error` where it has none. */
  @IsString() code!: string;
  /** One line for the mail. */
  @IsString() message!: string;
  /** Of the event on `$errors`, where there is one. */
  @IsOptional() @IsString() event_id?: string;
  @IsInt() raised_at_ms!: number;
}
/** Key: the account. */
export const errorRaised = fact('routing.error.raised', ErrorRaised);
