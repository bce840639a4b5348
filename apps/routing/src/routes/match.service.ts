import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { ListenerId, UserId } from '#contracts';
import { type EmittedEvent, eventIdOf } from '#events';
import { EmitterDirectory } from '#emitters';
import { counter, LOG, type Log } from '#observability';
import { MatchRepository } from './match.repository.js';

const unknownEmitters = counter('events_of_unknown_emitters_total', 'Events that were not routed because their emitter does not exist.');
/** An unknown emitter is told of once in this time. */
const TELL_EVERY_MS = 60_000;

export interface Match {
  ownerId: UserId;
  /** `version`: of a webhook. */
  listeners: { id: ListenerId; version: number | null }[];
}

type Pair = Pick<EmittedEvent, 'emitterId' | 'stream'>;
const keyOf = ({ emitterId, stream }: Pair): string => `${emitterId} ${stream}`;

/** Finds out where events go. */
@Injectable()
export class MatchService {
  private readonly told = new LRUCache<string, true>({ max: 1000, ttl: TELL_EVERY_MS });

  constructor(
    private readonly repository: MatchRepository,
    private readonly emitters: EmitterDirectory,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** The match of each event, in their order; undefined where the emitter isn't known yet. */
  async match(events: EmittedEvent[]): Promise<(Match | undefined)[]> {
    // events of one emitter and stream go the same ways: they are asked for once
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

  /** The same for events of emitters that aren't known yet: an event can be faster than the fact of its emitter, so the catalog is asked before it's called unknown. */
  async introduce(events: EmittedEvent[]): Promise<(Match | undefined)[]> {
    await this.emitters.find(events.map(({ emitterId }) => emitterId));
    const matches = await this.match(events);
    events.forEach((event, index) => matches[index] ?? this.tellOfUnknown(event));
    return matches;
  }

  private tellOfUnknown({ emitterId, place }: EmittedEvent): void {
    unknownEmitters.inc();
    if (this.told.has(emitterId)) return;
    this.told.set(emitterId, true);
    this.log.warn({ emitter_id: emitterId, event_id: eventIdOf(place) }, 'event.of-unknown-emitter');
  }
}
