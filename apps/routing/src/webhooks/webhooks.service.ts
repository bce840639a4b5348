import { Injectable } from '@nestjs/common';
import {
  type CreateWebhook,
  cursorOf,
  idOfCursor,
  Invalid,
  type ListWebhooks,
  NotFound,
  type Page,
  pageOf,
  type RotatedWebhookSecret,
  type RotateWebhookSecret,
  type UpdateWebhook,
  type Webhook,
  type WebhookReference,
  type WebhookSecret,
} from '#contracts';
import { SecretBox } from '#secrets';
import type { AddressGuard } from '#egress';
import { RoutingConfig } from '../routing.config.js';
import { newSigningSecret, openedSecret, sealedSecret } from './signing-secret.js';
import { rotatedSecretOf, webhookOf } from './webhook.entity.js';
import { WebhooksRepository } from './webhooks.repository.js';

/** How long the previous secret signs in addition to the new one after a rotation. */
const OLD_SECRET_MS = 24 * 3_600_000;

@Injectable()
export class WebhooksService {
  constructor(
    private readonly webhooks: WebhooksRepository,
    private readonly config: RoutingConfig,
    private readonly box: SecretBox,
  ) {}

  async create({ id, owner_id, url, name, description, rate_limit, external_id }: CreateWebhook): Promise<Webhook> {
    await this.check(url);
    const texts = { name: name ?? null, description: description ?? null, external_id: external_id ?? null };
    const webhook = { id, url, ...texts, rate_limit: rate_limit ?? null, secret: sealedSecret(this.box, id, newSigningSecret()) };
    const row = await this.webhooks.create(owner_id, webhook, this.config.maxWebhooks || Infinity);
    if (!row) throw new NotFound('webhook', id);
    return webhookOf(row);
  }

  async get({ owner_id, id }: WebhookReference): Promise<Webhook> {
    const row = await this.webhooks.find(owner_id, id);
    if (!row) throw new NotFound('webhook', id);
    return webhookOf(row);
  }

  async list({ owner_id, limit, after, before, external_id }: ListWebhooks): Promise<Page<Webhook>> {
    const page = { limit, after: idOfCursor('webhook', 'after', after), before: idOfCursor('webhook', 'before', before) };
    const { rows, total } = await this.webhooks.list(owner_id, page, external_id || undefined);
    const webhooks = rows.map((row) => webhookOf(row, { inList: true }));
    return pageOf(webhooks, total, ({ id }) => cursorOf(id));
  }

  async update({ owner_id, id, url, name, description, active, rate_limit, external_id }: UpdateWebhook): Promise<Webhook> {
    await this.check(url);
    const change = Object.entries({ url, name, description, rate_limit, external_id, active: active ?? undefined }).filter(
      ([, value]) => value !== undefined,
    );
    const row = await this.webhooks.update(owner_id, id, Object.fromEntries(change));
    if (!row) throw new NotFound('webhook', id);
    return webhookOf(row);
  }

  async delete({ owner_id, id }: WebhookReference): Promise<void> {
    if (!(await this.webhooks.delete(owner_id, id))) throw new NotFound('webhook', id);
  }

  async getSecret({ owner_id, id }: WebhookReference): Promise<WebhookSecret> {
    const row = await this.webhooks.findSecret(owner_id, id);
    if (!row) throw new NotFound('webhook', id);
    return { secret: openedSecret(this.box, id, row.secret) };
  }

  async rotateSecret({ owner_id, id, rotation_id }: RotateWebhookSecret): Promise<RotatedWebhookSecret> {
    const secret = sealedSecret(this.box, id, newSigningSecret());
    const row = await this.webhooks.rotateSecret(owner_id, id, secret, rotation_id, OLD_SECRET_MS);
    if (!row) throw new NotFound('webhook', id);
    return rotatedSecretOf(this.box, id, row);
  }

  /** Throws Invalid if its address may not be called. */
  private async check(url: string | undefined): Promise<void> {
    const message = await privateAddressProblem(url, this.config.guard);
    if (message) throw new Invalid([{ field: 'url', message }]);
  }
}

/** Why a URL with a literal address may not be called, or null. A name is judged when it is resolved. */
export async function privateAddressProblem(url: string | undefined, guard: AddressGuard): Promise<string | null> {
  if (!url) return null;
  const { hostname, port, protocol } = new URL(url);
  const problem = await guard.literalProblem(hostname, Number(port) || (protocol === 'https:' ? 443 : 80));
  return problem && `url: ${problem}`;
}
