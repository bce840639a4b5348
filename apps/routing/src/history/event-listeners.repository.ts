import { Injectable } from '@nestjs/common';
import type { EmitterId, ListenerId, SourceId, SubscriptionId, UserId, WebhookId, WorkflowId } from '#contracts';
import type { EventPlace, Stream } from '#events';
import { streamsCovering } from '#events';
import { Database } from '#database';
import type { Attempt } from '../deliveries/delivery.js';
import { beginOfEntry, type DeliveredEntry, hasLater, lastEntry } from '../deliveries/history/delivered.repository.js';
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

/** SQL: joins over the tables of several features, for a rare request of a user. */
@Injectable()
export class EventListenersRepository {
  constructor(private readonly database: Database) {}

  async deliveries(ownerId: UserId, emitterId: EmitterId, { ms, seq }: EventPlace): Promise<StoredDelivery[]> {
    const [parked, delivered] = await Promise.all([
      this.database.query<StoredDelivery>({
        name: 'event-parked',
        text: `SELECT p.webhook_id, p.attempts, CASE WHEN p.due_at IS NULL THEN 'failed' ELSE 'pending' END AS status
               FROM webhook JOIN parked_delivery p ON p.webhook_id = webhook.id AND p.ms = $2 AND p.seq = $3 WHERE webhook.owner_id = $1`,
        values: [ownerId, ms, seq],
      }),
      // a row has many deliveries, with the responses, and the account may have many webhooks: only the entries of the event are read
      this.database.query<{ webhook_id: WebhookId; entry: string }>({
        name: 'event-delivered',
        text: `SELECT webhook_id, ${lastEntry('$2')} AS entry FROM webhook JOIN delivered ON webhook_id = webhook.id
               WHERE owner_id = $1 AND position(convert_to($2, 'UTF8') IN deliveries) > 0 ORDER BY delivered.id`,
        values: [ownerId, `${beginOfEntry({ ms, seq })}"emitter_id":"${emitterId}"`],
      }),
    ]);
    const succeeded = delivered.rows.map(({ webhook_id, entry }): StoredDelivery => {
      const { attempts } = JSON.parse(entry) as DeliveredEntry;
      return { webhook_id, status: 'succeeded', attempts };
    });
    return [...succeeded, ...parked.rows];
  }

  /** The webhooks to which later events of the emitter were delivered lately: each gets the events of an emitter in order. */
  async beyond(ownerId: UserId, emitterId: EmitterId, { ms, seq }: EventPlace): Promise<Set<WebhookId>> {
    const { rows } = await this.database.query<{ webhook_id: WebhookId }>({
      name: 'event-beyond',
      text: `SELECT webhook_id FROM webhook CROSS JOIN LATERAL (
               SELECT webhook_id, deliveries FROM delivered
               WHERE webhook_id = webhook.id AND position(convert_to($2, 'UTF8') IN deliveries) > 0 ORDER BY id DESC LIMIT 1
             ) AS last WHERE webhook.owner_id = $1 AND ${hasLater('$3::text', '$4', '$5')}`,
      values: [ownerId, `"emitter_id":"${emitterId}"`, emitterId, ms, seq],
    });
    return new Set(rows.map(({ webhook_id }) => webhook_id));
  }

  /** Whether the event waits for capacity: then its listeners are those that it will have. */
  async isPostponed({ ms, seq }: EventPlace): Promise<boolean> {
    const { rows } = await this.database.query<{ waits: boolean }>({
      name: 'event-postponed',
      text: 'SELECT EXISTS (SELECT FROM postponed_event WHERE ms = $1 AND seq = $2) AS waits',
      values: [ms, seq],
    });
    return rows[0]?.waits ?? false;
  }

  async subscribers(ownerId: UserId, emitterId: EmitterId, stream: Stream): Promise<Subscriber[]> {
    const { rows } = await this.database.query<Subscriber>({
      name: 'event-subscribers',
      text: `SELECT s.listener_id, min(s.id) AS subscription_id, coalesce(webhook.active AND NOT webhook.suspended, listener.active) AS active,
                    coalesce(ceil(extract(epoch FROM webhook.activated_at) * 1000)::bigint, listener.activated_at_ms) AS activated_at_ms,
                    coalesce(ceil(extract(epoch FROM webhook.deactivated_at) * 1000)::bigint, listener.deactivated_at_ms) AS deactivated_at_ms
             FROM subscription s LEFT JOIN webhook ON webhook.id = s.listener_id
             LEFT JOIN emitter AS listener ON listener.id = s.listener_id AND NOT listener.deleted
             WHERE s.owner_id = $1 AND s.emitter_id = ANY (ARRAY[$2, $3, $1]) AND s.stream = ANY ($4)
               AND (s.emitter_id = $2 OR s.listener_id <> $2) AND (webhook.id IS NOT NULL OR listener.id IS NOT NULL)
             GROUP BY s.listener_id, webhook.id, listener.id
             ORDER BY s.listener_id`,
      values: [ownerId, emitterId, emitterId.startsWith('dc_') ? 'dc_*' : 'p_*', streamsCovering(stream)],
    });
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
