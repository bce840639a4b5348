import { Injectable } from '@nestjs/common';
import { FIND_WITHDRAWN_WITHIN_MS, findWithdrawnEmits, type WaitingEmit, type WaitingEmitKey } from '#contracts';
import { Messages } from '#messaging';

/** Finds emits that were deleted from `$in`. Only the event store knows them, because deletions are records of the topic. */
@Injectable()
export class WithdrawnEmits {
  constructor(private readonly messages: Messages) {}

  /** Throws Unavailable while the event store does not reply: nothing may be emitted then. */
  among(emits: WaitingEmit[]): Promise<WaitingEmitKey[]> {
    const key = emits[0]?.emitter_id ?? '';
    return this.messages.request(findWithdrawnEmits, { emits }, { account: null, key, timeoutMs: FIND_WITHDRAWN_WITHIN_MS });
  }
}
