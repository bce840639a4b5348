import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { ListenerId, UserId } from '#contracts';
import { type EmittedEvent, eventIdOf, EVERY_STREAM } from '#events';
import { Database } from '#database';
import { EmitterDirectory } from '#emitters';
import { counter, LOG, type Log } from '#observability';

const unknownEmitters = counter('events_of_unknown_emitters_total', 'Events that were not routed because their emitter does not exist.');
/** An unknown emitter is logged once in this time. */
const LOG_EVERY_MS = 60_000;
/** The listeners that one statement returns. */
const MAX_ROWS = 20_000;

export interface Match {
  ownerId: UserId;
  /** The emitter is a workflow that was removed before the event was emitted: it may have returned. It has no listeners. */
  isRemoved?: boolean;
  /** Earlier events of the emitter are postponed: this one must not overtake them. */
  postponed: boolean;
  /** `version`: of a webhook. */
  listeners: { id: ListenerId; version: number | null }[];
}

/** A listener of a stream of an emitter. */
interface MatchRow {
  /** The index of the requested pair. */
  n: number;
  owner_id: UserId;
  kind: 'source' | 'workflow';
  /** When it was deleted; null: it was not. */
  deleted_at_ms: number | null;
  postponed: boolean;
  /** null: no listener. */
  listener_id: ListenerId | null;
  /** The newest version of a webhook. */
  version: number | null;
}

/** An emitter that was deleted. */
type Ended = Pick<MatchRow, 'kind'> & { deleted_at_ms: number };

/** Whether a deleted emitter's event goes to nobody. Its subscriptions still apply to what was emitted before, to what its last runs emit, and to reports. */
const isAfterEnd = ({ place, fromOutbox }: EmittedEvent, { deleted_at_ms }: Ended): boolean => !fromOutbox && place.ms > deleted_at_ms;

type Pair = Pick<EmittedEvent, 'emitterId' | 'stream'>;
const keyOf = ({ emitterId, stream }: Pair): string => `${emitterId} ${stream}`;

/** Finds the listeners of events. Prepared SQL: it runs for each batch of events. */
@Injectable()
export class MatchRepository {
  private readonly logged = new LRUCache<string, true>({ max: 1000, ttl: LOG_EVERY_MS });

  constructor(
    private readonly database: Database,
    private readonly emitters: EmitterDirectory,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /**
   * The match of each event, in order; undefined if its emitter is not known yet. If the events have very many listeners together, only those of the
   * first ones, at least of one.
   */
  async match(events: EmittedEvent[]): Promise<(Match | undefined)[]> {
    // events of one emitter and stream have the same listeners: one lookup
    const numbers = new Map<string, number>();
    const pairs: Pair[] = [];
    const numberOf = events.map((event) => {
      const key = keyOf(event);
      let n = numbers.get(key);
      if (n === undefined) numbers.set(key, (n = pairs.push(event) - 1));
      return n;
    });
    if (pairs.length === 0) return [];
    const { rows, complete } = await this.findFirst(pairs);
    const matches: Match[] = [];
    const ended: Ended[] = [];
    for (const { n, owner_id, kind, deleted_at_ms, postponed, listener_id, version } of rows) {
      const match = (matches[n] ??= { ownerId: owner_id, postponed, listeners: [] });
      if (deleted_at_ms !== null) ended[n] = { kind, deleted_at_ms };
      if (listener_id !== null) match.listeners.push({ id: listener_id, version });
    }
    const end = numberOf.findIndex((n) => n >= complete);
    return (end < 0 ? numberOf : numberOf.slice(0, end)).map((n, index) => {
      const [match, emitter] = [matches[n], ended[n]];
      return match && emitter && isAfterEnd(events[index]!, emitter)
        ? { ...match, listeners: [], ...(emitter.kind === 'workflow' && { isRemoved: true }) }
        : match;
    });
  }

  /**
   * The same for events of emitters that are not known yet, or were removed. An event can arrive before the fact of its emitter, so the catalog is queried first.
   * Undefined if the emitter does not exist.
   */
  async introduce(events: EmittedEvent[]): Promise<(Match | undefined)[]> {
    await this.emitters.find(events.map(({ emitterId }) => emitterId));
    const matches: (Match | undefined)[] = [];
    while (matches.length < events.length) matches.push(...(await this.match(events.slice(matches.length))));
    return matches.map((match, index) => {
      if (match && !match.isRemoved) return match;
      this.logUnknown(events[index]!);
      return undefined;
    });
  }

  /** The rows of the first pairs: of as many as have few enough listeners together, at least of one. */
  private async findFirst(pairs: Pair[]): Promise<{ rows: MatchRow[]; complete: number }> {
    const rows = await this.find(pairs, `${MAX_ROWS}`);
    if (rows.length < MAX_ROWS) return { rows, complete: pairs.length };
    // the rows of the last pair may be incomplete
    const complete = rows.at(-1)?.n ?? 0;
    return complete > 0 ? { rows, complete } : { rows: await this.find(pairs.slice(0, 1), 'ALL'), complete: 1 };
  }

  /**
   * The listeners of each pair of emitter and stream, in one statement: a row per listener, one row for a pair without listeners, and none for an
   * unknown emitter. Always current: a subscription applies from the moment its request returns, because there is no cache to keep consistent between
   * replicas.
   */
  private async find(pairs: Pair[], limit: string): Promise<MatchRow[]> {
    const { rows } = await this.database.query<MatchRow>({
      name: `match ${limit}`,
      text: `
        SELECT asked.n::int - 1 AS n, emitter.owner_id, emitter.kind, CASE WHEN emitter.deleted THEN emitter.deleted_at_ms END AS deleted_at_ms,
          earlier.postponed, found.listener_id, found.version
        FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS asked (emitter_id, stream, n)
        JOIN emitter ON emitter.id = asked.emitter_id
        -- OFFSET 0: once for each pair, not for each listener
        CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM postponed_event WHERE emitter_id = asked.emitter_id) AS postponed OFFSET 0) AS earlier
        LEFT JOIN LATERAL (
          -- subscribed by id and by glob, or to '' and default: still one delivery
          SELECT DISTINCT s.listener_id, webhook.version
          FROM subscription s
          LEFT JOIN webhook ON webhook.id = s.listener_id
          LEFT JOIN emitter AS listener ON listener.id = s.listener_id
          WHERE s.owner_id = emitter.owner_id
            AND s.emitter_id = ANY (ARRAY[asked.emitter_id, CASE emitter.kind WHEN 'source' THEN 'dc_*' ELSE 'p_*' END, emitter.owner_id])
            -- * is the default stream and all custom ones, but no reserved one
            AND s.stream = ANY (ARRAY[asked.stream, CASE WHEN asked.stream LIKE '$%' THEN asked.stream ELSE '${EVERY_STREAM}' END])
            AND ((webhook.active AND NOT webhook.suspended) OR (listener.active AND NOT listener.deleted))
            -- a glob does not make an emitter trigger itself
            AND (s.emitter_id = asked.emitter_id OR s.listener_id <> asked.emitter_id)
        ) AS found ON true
        ORDER BY asked.n, found.listener_id
        LIMIT ${limit}`,
      values: [pairs.map(({ emitterId }) => emitterId), pairs.map(({ stream }) => stream)],
    });
    return rows;
  }

  private logUnknown({ emitterId, place }: EmittedEvent): void {
    unknownEmitters.inc();
    if (this.logged.has(emitterId)) return;
    this.logged.set(emitterId, true);
    this.log.warn({ emitter_id: emitterId, event_id: eventIdOf(place) }, 'event.of-unknown-emitter');
  }
}
