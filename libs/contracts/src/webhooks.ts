import { IsBoolean, IsInt, IsOptional, IsString, Max, Min, ValidateBy } from 'class-validator';
import { command, query } from './contract.js';
import { type EmitterId, type Id, IsId, type ListenerId, type UserId, type WebhookId } from './ids.js';
import { type Page, PageRequest } from './page.js';
import type { FindRuns } from './runs.js';
import {
  DESCRIPTION_LENGTH,
  IsExternalId,
  isText,
  IsText,
  MayBeAbsent,
  NAME_LENGTH,
  NOT_TEXT,
  SelectsExternalId,
  WEBHOOK_URL_LENGTH,
} from './values.js';

/** A webhook as the API returns it. Times are Unix seconds. */
export interface Webhook {
  id: WebhookId;
  /** The owner; omitted in lists. */
  user_id?: UserId;
  name: string | null;
  description: string | null;
  url: string;
  active: boolean;
  /** Deliveries per second; omitted if there is no limit. */
  rate_limit?: number;
  /** The user's own id of it; omitted if there is none. */
  external_id?: string;
  created_at: number;
  updated_at: number;
}

/** The problem of a webhook's URL, or null. Whether its address may be called is decided by routing. */
export function webhookUrlProblem(url: unknown): string | null {
  if (url === undefined || url === null || url === '') return 'url is required';
  if (typeof url !== 'string') return 'url must be a string';
  if (!isText(url)) return `url ${NOT_TEXT}`;
  if (url.length > WEBHOOK_URL_LENGTH) return `url must be at most ${WEBHOOK_URL_LENGTH} characters long`;
  if (/[\s\p{Cc}]/u.test(url)) return 'url must not contain spaces or line breaks; write a space as %20';
  // URL refuses such a port like a missing host
  if (Number(/^https?:\/\/[^/?#\\]+:(\d+)(?=[/?#]|$)/i.exec(url)?.[1]) > 65_535) return BAD_PORT;
  // URL itself forgives missing slashes
  if (!/^https?:\/\/[^/?#\\]/i.test(url) || !URL.canParse(url))
    return 'url must contain a protocol, http or https, and a host name, such as https://example.com/hooks';
  const { hostname, port } = new URL(url);
  // a dot at the end makes the name absolute
  if (!hostname.replace(/\.$/, '').split('.').every(isLabel)) return 'url must contain a host name whose parts have 1 to 63 characters';
  if (port === '0') return BAD_PORT;
  return null;
}

const BAD_PORT = 'url must contain a port from 1 to 65535, or none';

/** RFC 1035, 2.3.4. An IPv6 address, with its brackets, fits as well. */
const isLabel = (text: string): boolean => text.length >= 1 && text.length <= 63;

export const IsWebhookUrl = (): PropertyDecorator =>
  ValidateBy({
    name: 'isWebhookUrl',
    validator: {
      validate: (value: unknown) => webhookUrlProblem(value) === null,
      defaultMessage: (args) => webhookUrlProblem(args?.value) ?? '',
    },
  });

/** The fields of a new webhook and of a change, beside the URL. */
export class WebhookFields {
  @IsOptional()
  @IsText(NAME_LENGTH)
  name?: string | null;

  @IsOptional()
  @IsText(DESCRIPTION_LENGTH)
  description?: string | null;

  @IsOptional()
  @IsInt({ message: 'rate_limit must be an integer from 1 to 10000' })
  @Min(1, { message: 'rate_limit must be an integer from 1 to 10000' })
  @Max(10_000, { message: 'rate_limit must be an integer from 1 to 10000' })
  rate_limit?: number | null;

  @IsExternalId()
  external_id?: string | null;
}

export class CreateWebhook extends WebhookFields {
  /** The id of the new webhook, so that a repeated command creates one webhook. */
  @IsId('webhook') id!: WebhookId;
  @IsId('user') owner_id!: UserId;
  @IsWebhookUrl() url!: string;
}
export const createWebhook = command<Webhook>()('routing.webhook.create', CreateWebhook);

export class ListWebhooks extends PageRequest {
  @IsId('user') owner_id!: UserId;
  @SelectsExternalId() external_id?: string;
}
export const listWebhooks = query<Page<Webhook>>()('routing.webhook.list', ListWebhooks);

/** One webhook of an owner. */
export class WebhookReference {
  @IsId('user') owner_id!: UserId;
  @IsId('webhook') id!: WebhookId;
}
export const getWebhook = query<Webhook>()('routing.webhook.get', WebhookReference);
/** Also deletes its subscriptions and pending deliveries. */
export const deleteWebhook = command<void>()('routing.webhook.delete', WebhookReference);

/** Omitted fields keep their values; `null` clears the name or the description. */
export class UpdateWebhook extends WebhookFields {
  @IsId('user') owner_id!: UserId;
  @IsId('webhook') id!: WebhookId;

  @MayBeAbsent()
  @IsWebhookUrl()
  url?: string;

  @MayBeAbsent()
  @IsBoolean({ message: 'active must be true or false' })
  active?: boolean;
}
export const updateWebhook = command<Webhook>()('routing.webhook.update', UpdateWebhook);

export interface WebhookSecret {
  secret: string;
}
/** `previous_expires_at` (Unix seconds): until then, the previous secret signs, too. */
export interface RotatedWebhookSecret extends WebhookSecret {
  previous_expires_at: number;
}
export const getWebhookSecret = query<WebhookSecret>()('routing.webhook.get-secret', WebhookReference, { secret: true });

export class RotateWebhookSecret extends WebhookReference {
  /** Generated by the sender, so that a repeated command rotates the secret once. */
  @IsString() rotation_id!: string;
}
export const rotateWebhookSecret = command<RotatedWebhookSecret>()('routing.webhook.rotate-secret', RotateWebhookSecret, { secret: true });

/** One attempt of a delivery. */
export interface DeliveryAttempt {
  /** The start of the attempt, in ms. */
  ts: number;
  /** null if there was no response; `error` is the reason. */
  status_code: number | null;
  duration_ms: number;
  error: string | null;
  response_body: string | null;
}

export type DeliveryStatus = 'succeeded' | 'pending' | 'failed';

/** An event on its way to a webhook, as the API returns it. Times are Unix seconds. `attempts`: the last twenty, oldest first. */
export interface WebhookDelivery {
  id: Id<'delivery'>;
  event_id: string;
  emitter_id: EmitterId;
  status: DeliveryStatus;
  next_attempt_at: number | null;
  created_at: number;
  attempts: DeliveryAttempt[];
}

export class ListDeliveries extends PageRequest {
  @IsId('user') owner_id!: UserId;
  @IsId('webhook') webhook_id!: WebhookId;
}
/** At least the newest 100 successful deliveries, all pending ones, and failed ones until they are deleted. */
export const listDeliveries = query<Page<WebhookDelivery>>()('routing.delivery.list', ListDeliveries);

/** Delivers a sample event at once, also to an inactive webhook; it is not listed and never retried. */
export const testWebhook = command<DeliveryAttempt>()('routing.webhook.test', WebhookReference);

/** One delivery of an owner's webhook. */
export class DeliveryReference {
  @IsId('user') owner_id!: UserId;
  @IsId('webhook') webhook_id!: WebhookId;
  @IsId('delivery') id!: Id<'delivery'>;
}
/** Makes a delivery due now, also one that has succeeded, as long as its event is in the log or in the store. */
export const retryDelivery = command<WebhookDelivery>()('routing.delivery.retry', DeliveryReference);

export class RecoverDeliveries {
  @IsId('user') owner_id!: UserId;
  @IsId('webhook') webhook_id!: WebhookId;
  /** In ms: deliveries that failed at this time or later. */
  @IsInt({ message: 'since must be a time' }) since_ms!: number;
}
/** Makes all deliveries due now that have failed since then. */
export const recoverDeliveries = command<{ count: number }>()('routing.delivery.recover', RecoverDeliveries);

export class ListenersOfEvent {
  @IsId('user') owner_id!: UserId;
  @IsId('source', 'workflow') emitter_id!: EmitterId;
  /** `<ms>-<seq>` */
  @IsString() event_id!: string;
}

/** A listener that an event went to. */
export interface EventListener {
  listener_id: ListenerId;
  kind: 'webhook' | 'source' | 'workflow';
  /** Of a webhook; null until it is stored. */
  delivery_id: Id<'delivery'> | null;
  /** Of a source. */
  run_id: string | null;
  status: DeliveryStatus | 'skipped';
  attempts: DeliveryAttempt[];
}
/** As far as routing knows. A source for which `runs` finds a run is what that run shows, whether or not it is among these. */
export interface EventListeners {
  listeners: EventListener[];
  runs: Omit<FindRuns, 'owner_id'>;
}
/** The listeners that an event went to. */
export const listEventListeners = query<EventListeners>()('routing.event.listeners', ListenersOfEvent);
