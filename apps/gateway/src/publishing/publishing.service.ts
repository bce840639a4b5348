import { Injectable } from '@nestjs/common';
import type { UserId } from '#contracts';
import { eventRecord } from '#events';
import { AccountPace, EVENT_UNITS, MS_PER_UNIT } from '#fairness';
import { counter } from '#observability';
import { FullAccounts } from '#waiting-data';
import { GatewayConfig } from '../gateway.config.js';
import { EmitterOwners } from './emitter-owners.js';
import { EventLog } from './event-log.js';
import { type PublishedEvent, publishedEvents, type PublishRequest } from './published-events.js';

const published = counter('events_published_total', 'Events that were published over HTTP.');

/** An event that Kafka has acknowledged. */
export interface Acknowledged {
  emit_id: string;
}

/** Publishing over HTTP: events go straight to the log, in an emitter's name, without running any code. */
@Injectable()
export class PublishingService {
  constructor(
    private readonly owners: EmitterOwners,
    private readonly log: EventLog,
    private readonly config: GatewayConfig,
    private readonly pace: AccountPace,
    private readonly full: FullAccounts,
  ) {}

  /** Returns when Kafka has acknowledged every event. Throws TooManyRequests while the account is full. Malformed input is reported before an unknown emitter. */
  async publish(ownerId: UserId, kind: 'source' | 'workflow', id: string, request: PublishRequest): Promise<Acknowledged[]> {
    await this.full.refuseFull(ownerId);
    const begun = performance.now();
    let events: PublishedEvent[];
    try {
      events = publishedEvents(request, this.config);
    } finally {
      // also of a request that is refused: meanwhile, this process does nothing else
      this.pace.spend(ownerId, (performance.now() - begun) / MS_PER_UNIT);
    }
    const emitterId = await this.owners.emitterOf(ownerId, kind, id);
    await this.log.append(
      ownerId,
      events.map((event) => eventRecord({ ...event, emitterId })),
    );
    published.inc(events.length);
    this.pace.spend(ownerId, events.length * EVENT_UNITS);
    return events.map(({ emitId }) => ({ emit_id: emitId }));
  }
}
