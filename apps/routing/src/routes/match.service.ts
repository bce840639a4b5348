import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { EmittedEvent, ListenerId, UserId } from '#contracts';
import { EmitterDirectory } from '#emitters';
import { counter, LOG, type Log } from '#observability';
import { type MatchRow, MatchRepository } from './match.repository.js';

const unknownEmitters = counter('events_of_unknown_emitters_total', 'Events that were not routed because nobody knows their emitter.');
/** An unknown emitter is told of once in this time. */
const TELL_EVERY_MS = 60_000;

export interface Match {
  ownerId: UserId;
  listeners: { id: ListenerId; version: number | null }[];
}

/** Finds out where events go. */
@Injectable()
export class MatchService {
  private readonly told = new LRUCache<string, true>({ max: 1000, ttl: TELL_EVERY_MS });

  constructor(
    private readonly routes: MatchRepository,
    private readonly emitters: EmitterDirectory,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** The match of each event, in their order; undefined where the emitter is unknown even to the catalog. */
  async match(events: EmittedEvent[]): Promise<(Match | undefined)[]> {
    if (events.length === 0) return [];
    // events of one emitter and stream go the same ways: they are asked for once
    const pairs = new Map<string, { emitterId: string; stream: string }>();
    const keys = events.map(({ emitterId, stream }) => {
      const key = `${emitterId} ${stream}`;
      if (!pairs.has(key)) pairs.set(key, { emitterId, stream });
      return key;
    });
    const matches = await this.ask([...pairs.values()]);
    const strangers = [...pairs].filter(([key]) => !matches.has(key)).map(([, pair]) => pair);
    if (strangers.length > 0) await this.introduce(strangers, matches);
    const found = keys.map((key) => matches.get(key));
    events.forEach((event, index) => found[index] ?? this.tellOfUnknown(event));
    return found;
  }

  /** An event can be faster than the fact of its emitter: before it's called unknown, the catalog is asked. */
  private async introduce(pairs: { emitterId: string; stream: string }[], matches: Map<string, Match>): Promise<void> {
    const known = await this.emitters.find(pairs.map(({ emitterId }) => emitterId));
    const introduced = pairs.filter(({ emitterId }) => known.has(emitterId));
    if (introduced.length === 0) return;
    for (const [key, match] of await this.ask(introduced)) matches.set(key, match);
  }

  private async ask(pairs: { emitterId: string; stream: string }[]): Promise<Map<string, Match>> {
    const rows = await this.routes.match(pairs);
    const matches = new Map<string, Match>();
    for (const row of rows) this.add(matches, pairs[row.n], row);
    return matches;
  }

  private add(matches: Map<string, Match>, pair: { emitterId: string; stream: string } | undefined, row: MatchRow): void {
    if (!pair) return;
    const key = `${pair.emitterId} ${pair.stream}`;
    let match = matches.get(key);
    if (!match) matches.set(key, (match = { ownerId: row.owner_id, listeners: [] }));
    if (row.listener_id !== null) match.listeners.push({ id: row.listener_id, version: row.version });
  }

  private tellOfUnknown({ emitterId, place }: EmittedEvent): void {
    unknownEmitters.inc();
    if (this.told.has(emitterId)) return;
    this.told.set(emitterId, true);
    this.log.warn({ emitter_id: emitterId, event_id: `${place.ms}-${place.seq}` }, 'event.of-unknown-emitter');
  }
}
