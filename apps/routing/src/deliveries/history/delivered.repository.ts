import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Column, Entity, PrimaryColumn } from 'typeorm';
import { type EmitterId, type SubscriptionId, timeOfId, type UserId, type WebhookId } from '#contracts';
import { BYTEWISE_TEXT, Database } from '#database';
import { comparePlaces, type EmittedEvent, type EventPlace, streamsCovering } from '#events';
import { WebhooksRepository } from '../../webhooks/webhooks.repository.js';
import { RANDOM, type Random } from '../attempt/retry-schedule.js';
import type { Attempt } from '../delivery.js';
import type { PlaceWindow } from '../store/parked-deliveries.repository.js';

/** The newest deliveries that succeeded: a row for all deliveries to one webhook within two seconds. */
@Entity('delivered')
export class Delivered {
  @PrimaryColumn(BYTEWISE_TEXT)
  webhook_id!: WebhookId;

  @PrimaryColumn('bigint', { generated: 'identity', generatedIdentity: 'ALWAYS' })
  id!: number;

  @Column('integer')
  count!: number;

  /** A JSON array of them. */
  @Column('bytea')
  deliveries!: Buffer;

  /** The times of its earliest and its latest event; null in rows of earlier versions. */
  @Column('bigint', { nullable: true })
  first_ms!: number | null;

  @Column('bigint', { nullable: true })
  last_ms!: number | null;
}

/** A delivery that succeeded. */
export interface DeliveredEntry {
  ms: number;
  seq: number;
  emitter_id: EmitterId;
  attempts: Attempt[];
}

/** An entry as it is stored: its JSON is parsed only if it is shown, because a response body in it may have a kilobyte. */
interface StoredEntry extends EventPlace {
  json: string;
}

/** The entries of a row. Each begins with its place, as `add` writes it; this text occurs nowhere else, because quotes within strings are escaped. */
const storedEntries = (deliveries: Buffer): StoredEntry[] =>
  deliveries
    .toString('utf8')
    .slice(1, -1)
    .split(/,(?=\{"ms":)/)
    .map((json) => {
      const [, ms, seq] = /^\{"ms":(\d+),"seq":(\d+),/.exec(json) ?? [];
      return { ms: Number(ms), seq: Number(seq), json };
    });

const entryOf = ({ json }: StoredEntry): DeliveredEntry => JSON.parse(json) as DeliveredEntry;

/** How the stored text of an entry begins: a row without it holds no delivery of the event. */
export const beginOfEntry = ({ ms, seq }: EventPlace): string => `{"ms":${ms},"seq":${seq},`;

function lastOf(entries: StoredEntry[], place: EventPlace): DeliveredEntry | undefined {
  const entry = entries.findLast((each) => comparePlaces(each, place) === 0);
  return entry && entryOf(entry);
}

/** SQL: the last entry that begins like this, in a row that has one. An entry ends with a brace. */
export const lastEntry = (begin: string): string =>
  `rtrim(${begin} || split_part(split_part(convert_from(deliveries, 'UTF8'), ${begin}, -1), ',{"ms":', 1), ']')`;

/** SQL: whether a row can have a delivery of an event of this time. The deliveries of other rows are not read: most of them are stored outside their rows. */
export const canHave = (ms: string): string => `coalesce(${ms} BETWEEN first_ms AND last_ms, true)`;

/** SQL: whether a row has an entry of an event of the emitter behind this place. */
export const hasLater = (emitterId: string, ms: string, seq: string): string =>
  `coalesce(last_ms >= ${ms}, true) AND position(convert_to('"emitter_id":"' || ${emitterId} || '"', 'UTF8') IN deliveries) > 0 AND EXISTS (
     SELECT FROM string_to_table(convert_from(deliveries, 'UTF8'), '{"ms":') AS entry
     WHERE CASE WHEN split_part(entry, ',', 3) = '"emitter_id":"' || ${emitterId} || '"'
       THEN (split_part(entry, ',', 1)::bigint, split_part(split_part(entry, ',', 2), ':', 2)::bigint) > (${ms}, ${seq}) END
   )`;

/** How long ago its receiver responded, in ms. */
function ageOf(entry: DeliveredEntry | undefined): number {
  const last = entry?.attempts.at(-1);
  return last ? Math.max(0, Date.now() - last.ts - last.duration_ms) : 0;
}

/** At least this many of the newest deliveries are kept per webhook. */
export const KEPT = 100;
/** An event this old that has no stored delivery to a webhook was delivered long ago. */
export const DELIVERY_UNDER_WAY_MS = 60_000;
/** The rows that a webhook gets before surplus ones are deleted, unless they hold many deliveries. */
const TRIM_AFTER_ROWS = 20;
/** SQL: how many deliveries the newer rows of the webhook hold. */
const NEWER = 'sum(count) OVER (PARTITION BY webhook_id ORDER BY delivered.id DESC) - count';
/** The number of webhooks whose rows are counted. */
export const COUNTED = 50_000;

/** SQL that deletes the listed deliveries of a deleted webhook ($1). */
export const DELETE_DELIVERED = 'DELETE FROM delivered WHERE webhook_id = $1';

/** The only writer of the table `delivered`: the newest successful deliveries, one row per webhook and flush. SQL: one statement for all webhooks of a flush. */
@Injectable()
export class DeliveredRepository {
  private readonly sinceTrim = new LRUCache<WebhookId, number>({ max: COUNTED });

  constructor(
    private readonly database: Database,
    private readonly webhooks: WebhooksRepository,
    @Inject(RANDOM) private readonly random: Random,
  ) {}

  /** Adds entries and deletes surplus ones: at least `kept` remain. A receiver that responded is not failing. */
  async add(entries: Map<WebhookId, DeliveredEntry[]>, kept: number): Promise<void> {
    const ids = [...entries.keys()];
    const column = <Value>(valueOf: (ofWebhook: DeliveredEntry[]) => Value): Value[] => Array.from(entries.values(), valueOf);
    const times = (ofWebhook: DeliveredEntry[]) => ofWebhook.map(({ ms }) => ms);
    await this.database.query(
      `INSERT INTO delivered (webhook_id, count, deliveries, first_ms, last_ms)
       SELECT webhook.id, added.count, added.deliveries, added.first_ms, added.last_ms
       FROM unnest($1::text[], $2::integer[], $3::bytea[], $4::bigint[], $5::bigint[]) AS added (webhook_id, count, deliveries, first_ms, last_ms)
       -- not for a webhook that is deleted, or being deleted: nothing would delete them
       JOIN webhook ON webhook.id = added.webhook_id
       FOR KEY SHARE OF webhook SKIP LOCKED`,
      [
        ids,
        column(({ length }) => length),
        column((ofWebhook) => Buffer.from(JSON.stringify(ofWebhook))),
        column((ofWebhook) => Math.min(...times(ofWebhook))),
        column((ofWebhook) => Math.max(...times(ofWebhook))),
      ],
    );
    await this.webhooks.markResponding(new Map(ids.map((id) => [id, ageOf(entries.get(id)?.at(-1))])));
    const full = ids.filter((id) => this.isFull(id, entries.get(id)?.length ?? 0, kept));
    if (full.length > 0) await this.trim(full, kept);
  }

  /**
   * The newest deliveries, at least `KEPT` if there are as many: the places of all of them, and the entries of those in the window that are nearest to the
   * end at which it begins. Of an event that was delivered twice, there is the last delivery.
   */
  async list(
    ownerId: UserId,
    webhookId: WebhookId,
    { olderThan, newerThan, from, limit }: PlaceWindow,
  ): Promise<{ places: EventPlace[]; entries: DeliveredEntry[] }> {
    const { rows } = await this.database.query<{ deliveries: Buffer }>(
      `SELECT deliveries FROM (
         SELECT delivered.id, deliveries, ${NEWER} AS newer
         FROM delivered JOIN webhook ON webhook.id = webhook_id WHERE owner_id = $1 AND webhook_id = $2
       ) AS summed WHERE newer < $3 ORDER BY id`,
      [ownerId, webhookId, KEPT],
    );
    const byPlace = new Map(rows.flatMap(({ deliveries }) => storedEntries(deliveries)).map((entry) => [beginOfEntry(entry), entry]));
    const places = [...byPlace.values()];
    const within = places
      .filter((place) => comparePlaces(place, olderThan) < 0 && comparePlaces(place, newerThan) > 0)
      .sort((a, b) => (from === 'newest' ? comparePlaces(b, a) : comparePlaces(a, b)));
    return { places, entries: within.slice(0, limit).map(entryOf) };
  }

  /** The last delivery of an event to a webhook. */
  async find(ownerId: UserId, webhookId: WebhookId, place: EventPlace): Promise<DeliveredEntry | undefined> {
    return (await this.findAll(ownerId, webhookId, [place]))[0];
  }

  /** The last delivery of each of these events to a webhook; undefined for events without one. Only rows with these events are read. */
  async findAll(ownerId: UserId, webhookId: WebhookId, places: EventPlace[]): Promise<(DeliveredEntry | undefined)[]> {
    const { rows } = await this.database.query<{ deliveries: Buffer }>(
      `SELECT deliveries FROM delivered JOIN webhook ON webhook.id = webhook_id
       WHERE owner_id = $1 AND webhook_id = $2
         AND EXISTS (
           SELECT FROM unnest($3::text[], $4::bigint[]) AS entry (begin, ms)
           WHERE ${canHave('entry.ms')} AND position(convert_to(entry.begin, 'UTF8') IN deliveries) > 0
         )
       ORDER BY delivered.id`,
      [ownerId, webhookId, places.map(beginOfEntry), places.map(({ ms }) => ms)],
    );
    const entries = rows.flatMap(({ deliveries }) => storedEntries(deliveries));
    return places.map((place) => lastOf(entries, place));
  }

  /**
   * Whether an event that is neither parked nor listed was delivered to the webhook: it has a subscription from before the event, and later events of the
   * emitter were delivered, or a minute has passed. Also true if the webhook was switched off at that time.
   */
  async hasPassed(ownerId: UserId, webhookId: WebhookId, { emitterId, stream, place: { ms, seq } }: EmittedEvent): Promise<boolean> {
    const { rows } = await this.database.query<{ subscription_id: SubscriptionId | null; is_beyond: boolean }>(
      `SELECT (SELECT min(id) FROM subscription
               WHERE owner_id = $1 AND listener_id = $2 AND stream = ANY ($4)
                 AND emitter_id = ANY (ARRAY[$3, CASE emitter.kind WHEN 'source' THEN 'dc_*' ELSE 'p_*' END, $1])) AS subscription_id,
              EXISTS (SELECT FROM delivered WHERE webhook_id = $2 AND ${hasLater('$3::text', '$5', '$6')}) AS is_beyond
       FROM emitter WHERE id = $3 AND owner_id = $1 AND NOT deleted AND created_at_ms <= $5
         AND NOT EXISTS (SELECT FROM postponed_event WHERE ms = $5 AND seq = $6)`,
      [ownerId, webhookId, emitterId, streamsCovering(stream), ms, seq],
    );
    const [found] = rows;
    if (!found?.subscription_id || timeOfId(found.subscription_id) > ms) return false;
    return found.is_beyond || Date.now() - ms >= DELIVERY_UNDER_WAY_MS;
  }

  /** A row counts by the deliveries that it holds: otherwise, a webhook would have up to two thousand before surplus ones are deleted. */
  private isFull(id: WebhookId, added: number, kept: number): boolean {
    // a webhook that is not counted begins anywhere: if there are too many to count, each is still trimmed after as many rows on average
    const filled = (this.sinceTrim.get(id) ?? this.random()) + Math.max(1 / TRIM_AFTER_ROWS, added / kept);
    const full = filled >= 1;
    if (full) this.sinceTrim.delete(id);
    else this.sinceTrim.set(id, filled);
    return full;
  }

  private async trim(ids: WebhookId[], kept: number): Promise<void> {
    await this.database.query(
      `DELETE FROM delivered USING (
         SELECT webhook_id, id, ${NEWER} AS newer FROM delivered WHERE webhook_id = ANY($1)
       ) AS summed
       WHERE newer >= $2 AND delivered.webhook_id = summed.webhook_id AND delivered.id = summed.id`,
      [ids, kept],
    );
  }
}
