import { Injectable } from '@nestjs/common';
import {
  cursorOf,
  type DeliveryReference,
  RECORDS_GONE_AFTER_DAYS,
  idOfCursor,
  Invalid,
  type ListDeliveries,
  NotFound,
  type Page,
  pageOf,
  type RecoverDeliveries,
  SluiceError,
  unixSeconds,
  type UserId,
  type WebhookDelivery,
  type WebhookId,
} from '#contracts';
import { AFTER_ALL, BEFORE_ALL, type EmittedEvent, eventIdOf, type EventPlace } from '#events';
import { LimitPerKey } from '#limits';
import { FullAccounts } from '#waiting-data';
import { WebhooksRepository } from '../../webhooks/webhooks.repository.js';
import { type DeliveredEntry, DeliveredRepository } from './delivered.repository.js';
import { DeliveredLog } from './delivered-log.js';
import { deliveryOf, inOrder } from '../delivery.js';
import { deliveryIdOf, placeOfDelivery } from '../delivery-id.js';
import { RecordedEvents } from './recorded-events.js';
import { type ListedDelivery, ParkedDeliveriesRepository, type PlaceWindow } from '../store/parked-deliveries.repository.js';

const DAY_MS = 86_400_000;
/** Recoveries of one account at a time: with millions of deliveries, each occupies a connection to the database for minutes. */
const RECOVERED_AT_ONCE = 4;

/** A webhook's deliveries, as its owner lists and retries them. */
@Injectable()
export class DeliveriesService {
  private readonly recoveries = new LimitPerKey<UserId>(RECOVERED_AT_ONCE);

  constructor(
    private readonly webhooks: WebhooksRepository,
    private readonly parked: ParkedDeliveriesRepository,
    private readonly delivered: DeliveredRepository,
    private readonly deliveredLog: DeliveredLog,
    private readonly recorded: RecordedEvents,
    private readonly full: FullAccounts,
  ) {}

  async list({ owner_id, webhook_id, limit, after, before }: ListDeliveries): Promise<Page<WebhookDelivery>> {
    const window = placeWindow(webhook_id, limit, after, before);
    if (!(await this.webhooks.find(owner_id, webhook_id))) throw new NotFound('webhook', webhook_id);
    // first: a delivery that succeeds is in the log before it leaves the backlog
    const rows = await this.parked.list(owner_id, webhook_id, window);
    // the deliveries that this process made a moment ago
    await this.deliveredLog.flush(webhook_id);
    const { places, entries } = await this.delivered.list(owner_id, webhook_id, window);
    const total = await this.parked.count(owner_id, webhook_id, places);
    // delivered and parked: one delivery, in its last state
    const byPlace = new Map(
      [...entries.map((entry) => succeeded(entry, webhook_id)), ...rows.map((row) => pendingOrFailed(row, webhook_id))].map((delivery) => [
        delivery.id,
        delivery,
      ]),
    );
    const newestFirst = [...byPlace.values()].sort((a, b) => (a.id < b.id ? 1 : -1));
    const page = window.from === 'newest' ? newestFirst.slice(0, limit) : newestFirst.slice(-limit);
    return pageOf(page, total, ({ id }) => cursorOf(id));
  }

  async retry({ owner_id, webhook_id, id }: DeliveryReference): Promise<WebhookDelivery> {
    if (!(await this.webhooks.find(owner_id, webhook_id))) throw new NotFound('webhook', webhook_id);
    const place = placeOfDelivery(id, webhook_id);
    if (!place) throw new NotFound('delivery', id);
    const parked = await this.parked.find(owner_id, webhook_id, place);
    if (parked) {
      if (await this.recorded.isDeleted(owner_id, parked.emitter_id, parked.stream, place)) throw gone(id);
      const row = await this.parked.retry(owner_id, webhook_id, place);
      // otherwise it has just been delivered
      if (row) return pendingOrFailed(row, webhook_id);
    }
    await this.deliveredLog.flush(webhook_id);
    const entry = await this.delivered.find(owner_id, webhook_id, place);
    // with a deleted emitter, the events of its deliveries are gone
    if (!entry && parked) throw gone(id);
    const unlisted = entry ? undefined : await this.findUnlisted(owner_id, webhook_id, place);
    if (!entry && !unlisted) throw new NotFound('delivery', id);
    // a delivery that is parked is retried whatever waits: only this one adds a row
    await this.full.refuseFull(owner_id);
    const event = entry ? await this.recorded.find(owner_id, entry.emitter_id, place) : await this.unlessDeleted(owner_id, unlisted!);
    if (!event) throw gone(id);
    const delivery = { delivery: deliveryOf(event, webhook_id), attempts: entry?.attempts ?? [] };
    const [again] = await this.parked.parkAgain(owner_id, webhook_id, [delivery], { fresh: false });
    if (!again) throw new NotFound('webhook', webhook_id);
    // it was parked meanwhile, and its event deleted
    if (again.due_at === null) throw gone(id);
    return pendingOrFailed(again, webhook_id);
  }

  /** The event of a delivery that is not listed any more: as far as the log and the subscriptions show that there was one. */
  private async findUnlisted(ownerId: UserId, webhookId: WebhookId, place: EventPlace): Promise<EmittedEvent | undefined> {
    // Kafka has deleted it, and to look would take a consumer
    if (place.ms < Date.now() - RECORDS_GONE_AFTER_DAYS * DAY_MS) return undefined;
    const event = await this.recorded.at(ownerId, place);
    return event && (await this.delivered.hasPassed(ownerId, webhookId, event)) ? event : undefined;
  }

  private async unlessDeleted(ownerId: UserId, event: EmittedEvent): Promise<EmittedEvent | undefined> {
    const { emitterId, stream, place } = event;
    return (await this.recorded.isDeleted(ownerId, emitterId, stream, place)) ? undefined : event;
  }

  async recover({ owner_id, webhook_id, since_ms }: RecoverDeliveries): Promise<{ count: number }> {
    if (!(await this.webhooks.find(owner_id, webhook_id))) throw new NotFound('webhook', webhook_id);
    const recover = () => this.parked.recover(owner_id, webhook_id, since_ms);
    const refusal = `the deliveries of at most ${RECOVERED_AT_ONCE} webhooks of an account are recovered at a time`;
    return { count: await this.recoveries.run(owner_id, refusal, recover) };
  }
}

const gone = (id: string): SluiceError => new SluiceError('conflict', `the event of delivery ${id} is gone`);

function placeWindow(webhookId: WebhookId, limit: number, after: string | undefined, before: string | undefined): PlaceWindow {
  const place = (field: 'after' | 'before', cursor: string | undefined): EventPlace | undefined => {
    const id = idOfCursor('delivery', field, cursor);
    if (id === undefined) return undefined;
    const found = placeOfDelivery(id, webhookId);
    if (!found) throw new Invalid([{ field, message: `${field} is not a cursor of this list` }]);
    return found;
  };
  const [older, newer] = [place('after', after), place('before', before)];
  return { olderThan: older ?? AFTER_ALL, newerThan: newer ?? BEFORE_ALL, from: newer && !older ? 'oldest' : 'newest', limit };
}

const pendingOrFailed = (row: ListedDelivery, webhookId: WebhookId): WebhookDelivery =>
  listed(row, webhookId, row.due_at ? 'pending' : 'failed', row.due_at);

const succeeded = (entry: DeliveredEntry, webhookId: WebhookId): WebhookDelivery => listed(entry, webhookId, 'succeeded', null);

/** As the API returns it. */
const listed = (
  { ms, seq, emitter_id, attempts }: DeliveredEntry,
  webhookId: WebhookId,
  status: WebhookDelivery['status'],
  nextAttemptAt: Date | null,
): WebhookDelivery => ({
  id: deliveryIdOf({ ms, seq }, webhookId),
  event_id: eventIdOf({ ms, seq }),
  emitter_id,
  status,
  next_attempt_at: nextAttemptAt && unixSeconds(nextAttemptAt),
  created_at: Math.floor(ms / 1000),
  attempts: attempts.map(inOrder),
});
