import { Injectable } from '@nestjs/common';
import type { SourceId, UserId } from '#contracts';
import { deletionRecord, EVERY_STREAM, streamOf } from '#events';
import { AccountPace, EVENT_UNITS } from '#fairness';
import { SecretBox } from '#secrets';
import type { DeleteEventsQuery } from '../events/event.dto.js';
import { EmitterOwners } from './emitter-owners.js';
import { EventLog } from './event-log.js';

/** The cost of looking for events in all streams of a source, of which it may have a thousand. */
const ALL_STREAMS_UNITS = 10;

@Injectable()
export class DeletionsService {
  constructor(
    private readonly owners: EmitterOwners,
    private readonly eventLog: EventLog,
    private readonly box: SecretBox,
    private readonly pace: AccountPace,
  ) {}

  /**
   * Queues the deletion in the topic of the events, behind every event that it concerns, and returns when Kafka has acknowledged it. The order of the
   * topic decides which events were emitted before. Events published after the request must be behind the deletion: so it waits for no other service,
   * and has the producer of published events, which keeps their order.
   */
  async delete(ownerId: UserId, id: SourceId, { start_id, end_id, event_name }: DeleteEventsQuery): Promise<void> {
    const range = {
      startId: start_id ?? undefined,
      endId: end_id ?? undefined,
      stream: event_name === undefined || event_name === null ? undefined : streamOf(event_name),
    };
    const emitterId = await this.owners.emitterOf(ownerId, 'source', id);
    // a second copy would delete the events between the two
    await this.eventLog.append(ownerId, [deletionRecord({ emitterId, ...range }, this.box)], { once: true });
    this.pace.spend(ownerId, range.stream === undefined || range.stream === EVERY_STREAM ? ALL_STREAMS_UNITS : EVENT_UNITS);
  }
}
