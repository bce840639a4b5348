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
    private readonly eventLog: EventLog,
    private readonly config: GatewayConfig,
    private readonly pace: AccountPace,
    private readonly full: FullAccounts,
  ) {}

  /** Returns when Kafka has acknowledged every event. Throws TooManyRequests while the account is full. Malformed input is reported before an unknown emitter. */
  async publish(ownerId: UserId, kind: 'source' | 'workflow', id: string, request: PublishRequest): Promise<Acknowledged[]> {
    await this.full.refuseFull(ownerId);
    const events = this.read(ownerId, request);
    const emitterId = await this.owners.emitterOf(ownerId, kind, id);
    await this.eventLog.append(
      ownerId,
      events.map((event) => eventRecord({ ...event, emitterId })),
    );
    published.inc(events.length);
    this.pace.spend(ownerId, events.length * EVENT_UNITS);
    return acknowledged(events);
  }

  /** Returns the same as `publish` for this request, which has been published before. */
  published(ownerId: UserId, request: PublishRequest): Acknowledged[] {
    return acknowledged(this.read(ownerId, request));
  }

  private read(ownerId: UserId, request: PublishRequest): PublishedEvent[] {
    const begun = performance.now();
    try {
      return publishedEvents(request, this.config);
    } finally {
      // also of a request that is refused: meanwhile, this process does nothing else
      this.pace.spend(ownerId, (performance.now() - begun) / MS_PER_UNIT);
    }
  }
}

const acknowledged = (events: PublishedEvent[]): Acknowledged[] => events.map(({ emitId }) => ({ emit_id: emitId }));
