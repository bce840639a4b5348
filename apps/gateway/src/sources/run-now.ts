import { Injectable } from '@nestjs/common';
import { getSource, ksuid, executeRun, SluiceError, type SourceId, type UserId } from '#contracts';
import { Messages } from '#messaging';

/** Requests a run that is due at once. */
@Injectable()
export class RunNow {
  constructor(private readonly messages: Messages) {}

  /** Returns the run's id when Kafka has acknowledged the request. */
  async request(ownerId: UserId, id: SourceId, event: unknown): Promise<string> {
    const source = await this.messages.request(getSource, { owner_id: ownerId, id }, { key: ownerId });
    if (!source.active) throw new SluiceError('conflict', `source ${id} is not active`);
    const runId = ksuid();
    const run = { run_id: runId, owner_id: ownerId, source_id: id, trigger: 'manual' as const, due_at_ms: Date.now() };
    await this.messages.publish(executeRun, event === undefined ? run : { ...run, event: JSON.stringify(event) }, ownerId);
    return runId;
  }
}
