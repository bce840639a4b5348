import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { EmitterId, ListenerId, UserId } from '#contracts';
import { type EmittedEvent, eventIdOf, EVERY_STREAM, type Stream, streamsCovering } from '#events';
import { Database } from '#database';
import { EmitterDirectory } from '#emitters';
import { counter, LimitedWarnings, LOG, type Log } from '#observability';

const unknownEmitters = counter('events_of_unknown_emitters_total', 'Events that were not routed because their emitter does not exist.');
/** An unknown emitter is logged once in this time. */
const LOG_EVERY_MS = 60_000;
/** The subscriptions that one statement reads. */
const MAX_SUBSCRIPTIONS = 20_000;

/** `version`: the newest one of a webhook. */
interface Listener {
  id: ListenerId;
  version: number | null;
}

/** A listener whose subscription was deleted: it still applies to the events from before. */
interface FormerListener extends Listener {
  ended_at_ms: number;
}

export interface Match {
  ownerId: UserId;
  /** The emitter is a workflow that was removed before the event was emitted: it may have returned. It has no listeners. */
  isRemoved?: boolean;
  /** Earlier events of the emitter are postponed: this one must not overtake them. */
  postponed: boolean;
  listeners: Listener[];
}

export interface Matches {
  /** In the order of the events; undefined if the emitter is not known yet. */
  matches: (Match | undefined)[];
  /** The emitters, known or not, that have events in the table `unknown_event`, which later ones must not overtake. */
  stored: Set<EmitterId>;
}

/** An emitter that exists, or existed. */
interface EmitterRow {
  /** The index of the requested pair. */
  n: number;
  listener_id: null;
  owner_id: UserId;
  kind: 'source' | 'workflow';
  /** When it was deleted; null: it was not. */
  ended_at_ms: number | null;
  postponed: boolean;
  /** The pair at which the limit of subscriptions was reached; null: it was not. */
  cut: number | null;
}

/** A subscription of an active listener. */
interface SubscriptionRow {
  /** The first pair that it applies to. */
  n: number;
  listener_id: ListenerId;
  /** Of a webhook; of another listener, `NO_WEBHOOK`. */
  version: number;
  owner_id: UserId;
  emitter_id: string;
  stream: Stream;
  /** When it was deleted; null: it was not. */
  ended_at_ms: number | null;
}

/** An emitter with events in the table `unknown_event`. */
interface StoredRow {
  listener_id: null;
  owner_id: null;
  emitter_id: EmitterId;
}

type MatchRow = EmitterRow | SubscriptionRow | StoredRow;

const [NOT_ACTIVE, NO_WEBHOOK] = [0, -1];

/** The match of a pair of emitter and stream. */
type Found = Pick<EmitterRow, 'kind' | 'ended_at_ms'> & { match: Match; former: FormerListener[] };

/** Whether a deleted emitter's event goes to nobody. Its subscriptions still apply to what was emitted before, to what its last runs emit, and to reports. */
const isAfterEnd = ({ place, fromOutbox }: EmittedEvent, { ended_at_ms }: Found): boolean =>
  ended_at_ms !== null && !fromOutbox && place.ms > ended_at_ms;

/** The match of one of the pair's events: the time at which it was emitted decides who gets it. */
function matchOf(event: EmittedEvent, found: Found): Match {
  const { kind, match, former } = found;
  if (isAfterEnd(event, found)) return { ...match, listeners: [], ...(kind === 'workflow' && { isRemoved: true }) };
  if (former.length === 0) return match;
  return { ...match, listeners: eachOnce([...match.listeners, ...former.filter(({ ended_at_ms }) => event.place.ms <= ended_at_ms)]) };
}

type Pair = Pick<EmittedEvent, 'emitterId' | 'stream'>;

/** Finds the listeners of events. Prepared SQL: it runs for each batch of events. */
@Injectable()
export class MatchRepository {
  private readonly logged = new LRUCache<string, true>({ max: 1000, ttl: LOG_EVERY_MS });
  private readonly unknown: LimitedWarnings;

  constructor(
    private readonly database: Database,
    private readonly emitters: EmitterDirectory,
    @Inject(LOG) log: Log,
  ) {
    this.unknown = new LimitedWarnings(log, 'event.of-unknown-emitter');
  }

  /** If the events have very many listeners together, only the matches of the first ones, at least of one. */
  async match(events: EmittedEvent[]): Promise<Matches> {
    // events of one emitter and stream have the same listeners: one lookup
    const numbers = new Map<string, number>();
    const pairs: Pair[] = [];
    const numberOf = events.map((event) => {
      const key = `${event.emitterId} ${event.stream}`;
      let n = numbers.get(key);
      if (n === undefined) numbers.set(key, (n = pairs.push(event) - 1));
      return n;
    });
    if (pairs.length === 0) return { matches: [], stored: new Set() };
    const since = events.reduce((first, { place }) => Math.min(first, place.ms), Infinity);
    const { rows, complete } = await this.findFirst(pairs, since);
    const found = foundOf(pairs.slice(0, complete), rows);
    const matches: (Match | undefined)[] = [];
    let size = 0;
    for (const [index, n] of numberOf.entries()) {
      if (n >= found.length || size > MAX_SUBSCRIPTIONS) break;
      const pair = found[n];
      matches.push(pair && matchOf(events[index]!, pair));
      // the events of other pairs share a list of listeners
      if (pair && pair.former.length > 0) size += pair.match.listeners.length + pair.former.length;
    }
    return { matches, stored: new Set(rows.filter(isStored).map(({ emitter_id }) => emitter_id)) };
  }

  /**
   * The matches of events of emitters that are not known yet, or were removed. An event can arrive before the fact of its emitter, so the catalog is queried
   * first. Undefined if the emitter does not exist.
   */
  async introduce(events: EmittedEvent[]): Promise<(Match | undefined)[]> {
    await this.emitters.find(events.map(({ emitterId }) => emitterId));
    const matches: (Match | undefined)[] = [];
    while (matches.length < events.length) matches.push(...(await this.match(events.slice(matches.length))).matches);
    return matches.map((match, index) => this.lookedUp(events[index]!, match));
  }

  /** The match of an event whose emitter has been looked up; undefined if the emitter does not exist. */
  lookedUp(event: EmittedEvent, match: Match | undefined): Match | undefined {
    if (match && !match.isRemoved) return match;
    this.logUnknown(event);
    return undefined;
  }

  /** The rows of the first pairs: of as many as have few enough subscriptions together, at least of one. */
  private async findFirst(pairs: Pair[], since: number): Promise<{ rows: MatchRow[]; complete: number }> {
    const rows = await this.find(pairs, since, `${MAX_SUBSCRIPTIONS}`);
    const complete = rows.find(isEmitter)?.cut ?? pairs.length;
    return complete > 0 ? { rows, complete } : { rows: await this.find(pairs.slice(0, 1), since, 'ALL'), complete: 1 };
  }

  /**
   * Returns a row for each pair whose emitter is known, a row for each subscription that applies to a pair, and a row for each pair whose emitter has events
   * in the table `unknown_event`. A subscription is read once, even if it applies to many pairs: an account may emit for many emitters, and have very many
   * listeners for all of them. Nothing is cached, so a subscription applies as soon as its request returns, in all replicas.
   *
   * @param since when the first of the events was emitted. Subscriptions that ended before do not matter: usually all, and then they cost one look at an index
   */
  private async find(pairs: Pair[], since: number, limit: string): Promise<MatchRow[]> {
    const { rows } = await this.database.query<MatchRow>({
      name: `match ${limit}`,
      text: `
        WITH pair AS MATERIALIZED (
          SELECT asked.n::int - 1 AS n, asked.stream, emitter.id AS emitter_id, owner_id, kind, CASE WHEN deleted THEN deleted_at_ms END AS ended_at_ms
          FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS asked (emitter_id, stream, n) JOIN emitter ON emitter.id = asked.emitter_id
        ), lookup AS MATERIALIZED (
          SELECT min(n) AS n, owner_id, subscribed.emitter_id, subscribed.stream
          FROM pair CROSS JOIN LATERAL (
            SELECT emitter_id, stream
            FROM unnest(ARRAY[pair.emitter_id, CASE kind WHEN 'source' THEN 'dc_*' ELSE 'p_*' END, owner_id]) AS emitter_id,
              -- * is the default stream and all custom ones, but no reserved one
              unnest(ARRAY[pair.stream, CASE WHEN pair.stream LIKE '$%' THEN pair.stream ELSE '${EVERY_STREAM}' END]) AS stream
          ) AS subscribed
          GROUP BY owner_id, subscribed.emitter_id, subscribed.stream
        ), subscribed AS MATERIALIZED (
          -- limits what is read, not only what is active
          SELECT lookup.*, s.listener_id, s.ended_at_ms
          FROM lookup CROSS JOIN LATERAL (
            SELECT listener_id, NULL::bigint AS ended_at_ms
            FROM subscription WHERE owner_id = lookup.owner_id AND emitter_id = lookup.emitter_id AND stream = lookup.stream
            UNION ALL
            SELECT listener_id, ended_at_ms
            FROM ended_subscription WHERE owner_id = lookup.owner_id AND emitter_id = lookup.emitter_id AND stream = lookup.stream AND ended_at_ms >= $3
              AND (SELECT EXISTS (SELECT FROM ended_subscription WHERE ended_at_ms >= $3))
            OFFSET 0
          ) AS s
          ORDER BY n LIMIT ${limit}
        )
        SELECT n, owner_id, kind, ended_at_ms, earlier.postponed, NULL AS emitter_id, NULL AS stream, NULL AS listener_id, NULL::bigint AS version,
          (SELECT CASE WHEN count(*) >= ${MAX_SUBSCRIPTIONS} THEN max(n) END FROM subscribed) AS cut
        FROM pair CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM postponed_event WHERE emitter_id = pair.emitter_id) AS postponed OFFSET 0) AS earlier
        UNION ALL
        SELECT n, owner_id, NULL, subscribed.ended_at_ms, NULL, emitter_id, stream, listener_id, listener.version, NULL
        FROM subscribed CROSS JOIN LATERAL (
          SELECT coalesce(
            (SELECT CASE WHEN active AND NOT suspended THEN version ELSE ${NOT_ACTIVE} END FROM webhook WHERE id = subscribed.listener_id),
            (SELECT CASE WHEN active AND NOT deleted THEN ${NO_WEBHOOK} ELSE ${NOT_ACTIVE} END FROM emitter WHERE id = subscribed.listener_id)
          ) AS version OFFSET 0
        ) AS listener
        WHERE listener.version <> ${NOT_ACTIVE}
        UNION ALL
        SELECT NULL, NULL, NULL, NULL, NULL, asked.emitter_id, NULL, NULL, NULL, NULL
        FROM unnest($1::text[]) AS asked (emitter_id)
          CROSS JOIN LATERAL (SELECT FROM unknown_event WHERE emitter_id = asked.emitter_id LIMIT 1) AS earlier`,
      values: [pairs.map(({ emitterId }) => emitterId), pairs.map(({ stream }) => stream), since],
    });
    return rows;
  }

  /** An event goes to nobody, because its emitter does not exist. */
  logUnknown({ emitterId, place }: Pick<EmittedEvent, 'emitterId' | 'place'>): void {
    unknownEmitters.inc();
    if (this.logged.has(emitterId)) return;
    this.logged.set(emitterId, true);
    this.unknown.warn({ emitter_id: emitterId, event_id: eventIdOf(place) });
  }
}

/** The matches of the first pairs: of as many as have few enough listeners together, at least of one. Undefined: the emitter is unknown. */
function foundOf(pairs: Pair[], rows: MatchRow[]): (Found | undefined)[] {
  const emitters: EmitterRow[] = [];
  const [subscribed, unsubscribed] = [new Map<string, Listener[]>(), new Map<string, FormerListener[]>()];
  for (const row of rows) {
    if (isStored(row)) continue;
    if (isEmitter(row)) emitters[row.n] = row;
    else {
      const key = lookupKey(row.owner_id, row.emitter_id, row.stream);
      const listener = { id: row.listener_id, version: row.version === NO_WEBHOOK ? null : row.version };
      if (row.ended_at_ms === null) addTo(subscribed, key, listener);
      else addTo(unsubscribed, key, { ...listener, ended_at_ms: row.ended_at_ms });
    }
  }
  const found: (Found | undefined)[] = [];
  let count = 0;
  for (const [n, { emitterId, stream }] of pairs.entries()) {
    const emitter = emitters[n];
    if (!emitter) {
      found.push(undefined);
      continue;
    }
    const { owner_id: ownerId, kind, ended_at_ms, postponed } = emitter;
    const covering = streamsCovering(stream);
    const listenersIn = <L extends Listener>(listenersOf: Map<string, L[]>): L[] => {
      const of = (id: string) => covering.flatMap((each) => listenersOf.get(lookupKey(ownerId, id, each)) ?? []);
      // a glob does not make an emitter trigger itself
      const ofAll = [kind === 'source' ? 'dc_*' : 'p_*', ownerId].flatMap(of).filter(({ id }) => id !== emitterId);
      return [...of(emitterId), ...ofAll];
    };
    const listeners = eachOnce(listenersIn(subscribed));
    const former = unsubscribed.size === 0 ? [] : listenersIn(unsubscribed);
    count += listeners.length + former.length;
    if (n > 0 && count > MAX_SUBSCRIPTIONS) break;
    found.push({ kind, ended_at_ms, match: { ownerId, postponed, listeners }, former });
  }
  return found;
}

const isEmitter = (row: MatchRow): row is EmitterRow => row.listener_id === null && row.owner_id !== null;
const isStored = (row: MatchRow): row is StoredRow => row.owner_id === null;

/** The key of the subscriptions of an account to a stream of an emitter, or of all emitters. */
const lookupKey = (ownerId: UserId, emitterId: string, stream: Stream): string => `${ownerId} ${emitterId} ${stream}`;

function addTo<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

/** In the order of their ids. */
const eachOnce = (listeners: Listener[]): Listener[] =>
  listeners.length < 2
    ? listeners
    : [...new Map(listeners.map((listener) => [listener.id, listener])).values()].sort((a, b) => (a.id < b.id ? -1 : 1));
