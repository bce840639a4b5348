import { Injectable } from '@nestjs/common';
import { findWithdrawnEmits, type WaitingEmit, type WaitingEmitKey } from '#contracts';
import { Messages } from '#messaging';

/** Shorter than the shutdown timeout of a process. */
const ASK_TIMEOUT_MS = 5000;

/** Finds emits that were deleted from `$in`. Only the event store knows them, because deletions are records of the topic. */
@Injectable()
export class WithdrawnEmits {
  constructor(private readonly messages: Messages) {}

  /** Throws Unavailable while the event store does not reply: nothing may be emitted then. */
  among(emits: WaitingEmit[]): Promise<WaitingEmitKey[]> {
    const key = emits[0]?.emitter_id ?? '';
    return this.messages.request(findWithdrawnEmits, { emits }, { key, timeoutMs: ASK_TIMEOUT_MS });
  }
}
