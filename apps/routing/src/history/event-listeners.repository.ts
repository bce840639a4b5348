import { Injectable } from '@nestjs/common';
import type { EmitterId, ListenerId, SourceId, SubscriptionId, UserId, WebhookId, WorkflowId } from '#contracts';
import type { EventPlace, Stream } from '#events';
import { streamsCovering } from '#events';
import { Database } from '#database';
import type { Attempt } from '../deliveries/delivery.js';
import { beginOfEntry, canHave, type DeliveredEntry, hasLater, lastEntry } from '../deliveries/history/delivered.repository.js';
import type { ReplayRow } from '../replays/replays.repository.js';

/** A delivery of an event that is stored. */
export interface StoredDelivery {
  webhook_id: WebhookId;
  status: 'succeeded' | 'pending' | 'failed';
  attempts: Attempt[];
}

/** A current listener of an emitter's stream, active or not. */
export interface Subscriber {
  listener_id: ListenerId;
  /** Its oldest subscription. */
  subscription_id: SubscriptionId;
  active: boolean;
  /** When it last became active, and inactive. */
  activated_at_ms: number;
  deactivated_at_ms: number;
}

/** A replay of events of an emitter to a source or workflow. */
export interface EmitterReplay extends Pick<ReplayRow, 'id' | 'stream' | 'from_id' | 'to_id' | 'offsets'> {
  listener_id: SourceId | WorkflowId;
}

/** The number of replays of an emitter that are looked through, the newest ones. */
const REPLAYS = 1000;
/** The webhooks that one statement looks at. */
const PORTION = 500;

/** The traces of an event at a webhook. */
interface StoredRow {
  webhook_id: WebhookId;
  /** null: it is not parked. */
  parked: Attempt[] | null;
  has_failed: boolean | null;
  /** A `DeliveredEntry` as JSON. */
  delivered: string | null;
}

/**
 * OFFSET 0 and LIMIT force a lookup for each webhook. Otherwise, if one account has very many webhooks, PostgreSQL plans the prepared statement for about as
 * many, and reads the tables of all accounts. A row of `delivered` has many deliveries, with the responses: only the entry of the event is returned.
 */
const DELIVERIES = `
  SELECT webhook.id AS webhook_id, parked.attempts AS parked, parked.has_failed, delivered.entry AS delivered
  FROM (SELECT id FROM webhook WHERE owner_id = $1 AND id > $2 ORDER BY id LIMIT ${PORTION}) AS webhook
  LEFT JOIN LATERAL (
    SELECT attempts, due_at IS NULL AS has_failed FROM parked_delivery WHERE webhook_id = webhook.id AND ms = $3 AND seq = $4 OFFSET 0
  ) AS parked ON true
  LEFT JOIN LATERAL (
    SELECT ${lastEntry('$5')} AS entry FROM delivered
    WHERE webhook_id = webhook.id AND ${canHave('$3')} AND position(convert_to($5, 'UTF8') IN deliveries) > 0 ORDER BY id DESC LIMIT 1
  ) AS delivered ON true
  ORDER BY webhook.id`;

/** A delivery that is stored as succeeded and as parked is parked again. */
function deliveryOf({ webhook_id, parked, has_failed, delivered }: StoredRow): StoredDelivery | undefined {
  if (parked) return { webhook_id, status: has_failed ? 'failed' : 'pending', attempts: parked };
  if (delivered === null) return undefined;
  const { attempts } = JSON.parse(delivered) as DeliveredEntry;
  return { webhook_id, status: 'succeeded', attempts };
}

/** SQL: joins over the tables of several features, for a rare request of a user. */
@Injectable()
export class EventListenersRepository {
  constructor(private readonly database: Database) {}

  /** At all webhooks of the account, a portion of them with each statement: it may have very many. */
  async *deliveries(ownerId: UserId, emitterId: EmitterId, { ms, seq }: EventPlace): AsyncGenerator<StoredDelivery> {
    const begin = `${beginOfEntry({ ms, seq })}"emitter_id":"${emitterId}"`;
    let last: WebhookId | undefined;
    do {
      const { rows } = await this.database.query<StoredRow>({
        name: 'event-deliveries',
        text: DELIVERIES,
        values: [ownerId, last ?? '', ms, seq, begin],
      });
      for (const row of rows) {
        const delivery = deliveryOf(row);
        if (delivery) yield delivery;
      }
      last = rows.length < PORTION ? undefined : rows.at(-1)?.webhook_id;
    } while (last);
  }

  /** Those of the webhooks to which later events of the emitter were delivered lately: each gets the events of an emitter in order. */
  async beyond(ownerId: UserId, emitterId: EmitterId, { ms, seq }: EventPlace, webhookIds: WebhookId[]): Promise<Set<WebhookId>> {
    const beyond = new Set<WebhookId>();
    for (let from = 0; from < webhookIds.length; from += PORTION) {
      const { rows } = await this.database.query<{ id: WebhookId }>({
        name: 'event-beyond',
        text: `SELECT id FROM webhook WHERE owner_id = $1 AND id = ANY ($2)
                 AND EXISTS (SELECT FROM delivered WHERE webhook_id = webhook.id AND ${hasLater('$3::text', '$4', '$5')} OFFSET 0)`,
        values: [ownerId, webhookIds.slice(from, from + PORTION), emitterId, ms, seq],
      });
      for (const { id } of rows) beyond.add(id);
    }
    return beyond;
  }

  /** Whether the event waits for capacity or until its emitter is known: then its listeners are those that it will have. */
  async isPostponed({ ms, seq }: EventPlace): Promise<boolean> {
    const { rows } = await this.database.query<{ waits: boolean }>({
      name: 'event-postponed',
      text: `SELECT EXISTS (SELECT FROM postponed_event WHERE ms = $1 AND seq = $2)
                 OR EXISTS (SELECT FROM unknown_event WHERE ms = $1 AND seq = $2) AS waits`,
      values: [ms, seq],
    });
    return rows[0]?.waits ?? false;
  }

  async subscribers(ownerId: UserId, emitterId: EmitterId, stream: Stream): Promise<Subscriber[]> {
    // not prepared: a plan for the average account may read the subscriptions of all accounts to `dc_*`
    const { rows } = await this.database.query<Subscriber>(
      `SELECT s.listener_id, min(s.id) AS subscription_id, coalesce(webhook.active AND NOT webhook.suspended, listener.active) AS active,
                    coalesce(ceil(extract(epoch FROM webhook.activated_at) * 1000)::bigint, listener.activated_at_ms) AS activated_at_ms,
                    coalesce(ceil(extract(epoch FROM webhook.deactivated_at) * 1000)::bigint, listener.deactivated_at_ms) AS deactivated_at_ms
             FROM subscription s LEFT JOIN webhook ON webhook.id = s.listener_id
             LEFT JOIN emitter AS listener ON listener.id = s.listener_id AND NOT listener.deleted
             WHERE s.owner_id = $1 AND s.emitter_id = ANY (ARRAY[$2, $3, $1]) AND s.stream = ANY ($4)
               AND (s.emitter_id = $2 OR s.listener_id <> $2) AND (webhook.id IS NOT NULL OR listener.id IS NOT NULL)
             GROUP BY s.listener_id, webhook.id, listener.id
             ORDER BY s.listener_id`,
      [ownerId, emitterId, emitterId.startsWith('dc_') ? 'dc_*' : 'p_*', streamsCovering(stream)],
    );
    return rows;
  }

  /** Newest first. */
  async replays(ownerId: UserId, emitterId: EmitterId): Promise<EmitterReplay[]> {
    const { rows } = await this.database.query<EmitterReplay>({
      name: 'event-replays',
      text: `SELECT r.id, r.listener_id, r.stream, r.from_id, r.to_id, r.offsets
             FROM replay r JOIN emitter AS listener ON listener.id = r.listener_id AND NOT listener.deleted
             WHERE r.owner_id = $1 AND r.emitter_id = $2 ORDER BY r.id DESC LIMIT ${REPLAYS}`,
      values: [ownerId, emitterId],
    });
    return rows;
  }
}
