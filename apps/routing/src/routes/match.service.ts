import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { ListenerId, UserId } from '#contracts';
import { type EmittedEvent, eventIdOf } from '#events';
import { EmitterDirectory } from '#emitters';
import { counter, LOG, type Log } from '#observability';
import { MatchRepository } from './match.repository.js';

const unknownEmitters = counter('events_of_unknown_emitters_total', 'Events that were not routed because their emitter does not exist.');
/** An unknown emitter is logged once in this time. */
const LOG_EVERY_MS = 60_000;

export interface Match {
  ownerId: UserId;
  /** `version`: of a webhook. */
  listeners: { id: ListenerId; version: number | null }[];
}

type Pair = Pick<EmittedEvent, 'emitterId' | 'stream'>;
const keyOf = ({ emitterId, stream }: Pair): string => `${emitterId} ${stream}`;

/** Finds the listeners of events. */
@Injectable()
export class MatchService {
  private readonly logged = new LRUCache<string, true>({ max: 1000, ttl: LOG_EVERY_MS });

  constructor(
    private readonly repository: MatchRepository,
    private readonly emitters: EmitterDirectory,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** The match of each event, in order; undefined if its emitter is not known yet. */
  async match(events: EmittedEvent[]): Promise<(Match | undefined)[]> {
    // events of one emitter and stream have the same listeners: one lookup
    const pairs = new Map<string, Pair>();
    for (const event of events) pairs.set(keyOf(event), event);
    if (pairs.size === 0) return [];
    const asked = [...pairs.values()];
    const matches = new Map<string, Match>();
    for (const { n, owner_id, listener_id, version } of await this.repository.match(asked)) {
      const key = keyOf(asked[n] as Pair);
      let match = matches.get(key);
      if (!match) matches.set(key, (match = { ownerId: owner_id, listeners: [] }));
      if (listener_id !== null) match.listeners.push({ id: listener_id, version });
    }
    return events.map((event) => matches.get(keyOf(event)));
  }

  /** The same for events of emitters that are not known yet. An event can arrive before the fact of its emitter, so the catalog is queried first. */
  async introduce(events: EmittedEvent[]): Promise<(Match | undefined)[]> {
    await this.emitters.find(events.map(({ emitterId }) => emitterId));
    const matches = await this.match(events);
    events.forEach((event, index) => matches[index] ?? this.logUnknown(event));
    return matches;
  }

  private logUnknown({ emitterId, place }: EmittedEvent): void {
    unknownEmitters.inc();
    if (this.logged.has(emitterId)) return;
    this.logged.set(emitterId, true);
    this.log.warn({ emitter_id: emitterId, event_id: eventIdOf(place) }, 'event.of-unknown-emitter');
  }
}
