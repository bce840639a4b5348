import { beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import type { UpdateWebhook, UserId, WebhookId } from '#contracts';
import { SecretBox } from '#secrets';
import { RoutingConfig } from '../routing.config.js';
import type { WebhookRow } from './webhook.entity.js';
import { WebhooksRepository } from './webhooks.repository.js';
import { WebhooksService } from './webhooks.service.js';

const ME = 'u_000000000000000001';
const OTHER = 'u_000000000000000002';
const ID = 'wh_000000000000000001';
const URL = 'https://hooks.test/in';

type Stored = WebhookRow & { secret: string; rotation?: string };

/** In place of WebhooksRepository: its rows and their secrets, without deliveries. */
class WebhooksInMemory implements Pick<WebhooksRepository, 'create' | 'find' | 'update' | 'delete' | 'findSecret' | 'rotateSecret'> {
  readonly rows = new Map<WebhookId, Stored>();

  async create(
    owner_id: UserId,
    webhook: Pick<WebhookRow, 'id' | 'url' | 'name' | 'description' | 'rate_limit'> & { secret: string },
  ): Promise<WebhookRow | undefined> {
    const at = new Date(1_700_000_000_500);
    const row = { ...webhook, owner_id, active: true, created_at: at, updated_at: at } as unknown as Stored;
    if (!this.rows.has(webhook.id)) this.rows.set(webhook.id, row);
    return this.find(owner_id, webhook.id);
  }

  async find(ownerId: UserId, id: WebhookId) {
    const row = this.rows.get(id);
    return row?.owner_id === ownerId ? row : undefined;
  }

  async update(ownerId: UserId, id: WebhookId, change: object): Promise<WebhookRow | undefined> {
    const row = await this.find(ownerId, id);
    return row && Object.assign(row, change);
  }

  async delete(ownerId: UserId, id: WebhookId): Promise<boolean> {
    return (await this.find(ownerId, id)) !== undefined && this.rows.delete(id);
  }

  async findSecret(ownerId: UserId, id: WebhookId) {
    const row = await this.find(ownerId, id);
    return row && { secret: row.secret };
  }

  async rotateSecret(ownerId: UserId, id: WebhookId, secret: string, rotation: string, keepMs: number) {
    const row = await this.find(ownerId, id);
    if (row && row.rotation !== rotation) Object.assign(row, { secret, rotation });
    return row && { secret: row.secret, previous_secret_expires_at: new Date(1_700_000_000_000 + keepMs) };
  }
}

describe('the webhooks of an account', () => {
  let service: WebhooksService;
  let stored: WebhooksInMemory;

  beforeEach(async () => {
    stored = new WebhooksInMemory();
    const module = await Test.createTestingModule({
      providers: [
        WebhooksService,
        { provide: WebhooksRepository, useValue: stored },
        { provide: RoutingConfig, useValue: RoutingConfig.read({}) },
        { provide: SecretBox, useValue: new SecretBox([Buffer.alloc(32, 1)]) },
      ],
    }).compile();
    service = module.get(WebhooksService);
  });

  const create = (fields: object = {}) => service.create({ id: ID, owner_id: ME, url: URL, ...fields });
  const update = (fields: Partial<UpdateWebhook>) => service.update({ id: ID, owner_id: ME, ...fields });

  it('shows a new webhook without its secret', async () => {
    expect(await create({ name: 'Mine', rate_limit: 5 })).toEqual({
      ...{ id: ID, user_id: ME, name: 'Mine', description: null, url: URL, active: true, rate_limit: 5 },
      ...{ created_at: 1_700_000_000, updated_at: 1_700_000_000 },
    });
  });

  it('is created once by a command that is carried out twice, and keeps its secret', async () => {
    await create();
    const { secret } = await service.getSecret({ owner_id: ME, id: ID });
    expect(await create({ url: 'https://other.test/' })).toMatchObject({ url: URL });
    expect(await service.getSecret({ owner_id: ME, id: ID })).toEqual({ secret });
  });

  it('does not return a webhook of another account that has the id of a new one', async () => {
    await create();
    await expect(create({ owner_id: OTHER })).rejects.toMatchObject({ code: 'not_found' });
  });

  it('is not created with an address that may not be called', async () => {
    await expect(create({ url: 'http://10.0.0.1/' })).rejects.toMatchObject({ code: 'invalid', details: { errors: [{ field: 'url' }] } });
    expect(stored.rows.size).toBe(0);
  });

  it.each<[string, Partial<UpdateWebhook>, object]>([
    ['nothing, where nothing is given', {}, {}],
    ['the URL alone', { url: 'https://b.test/' }, { url: 'https://b.test/' }],
    ['the state alone', { active: false }, { active: false }],
    ['a name to nothing by null', { name: null }, { name: null }],
    ['a rate limit', { rate_limit: 3 }, { rate_limit: 3 }],
    ['nothing by an active that is null', { active: null as never }, { active: true }],
  ])('an update changes %s', async (_, change, changed) => {
    const before = await create({ name: 'Mine', description: 'of mine' });
    expect(await update(change)).toEqual({ ...before, ...changed });
  });

  it('an update with a bad field changes nothing', async () => {
    const before = await create();
    await expect(update({ url: 'http://10.0.0.1/', active: false })).rejects.toMatchObject({ code: 'invalid' });
    expect(await service.get({ owner_id: ME, id: ID })).toEqual(before);
  });

  it('a rotation makes a new secret once, and only its response states when the old one ends', async () => {
    await create();
    const { secret: old } = await service.getSecret({ owner_id: ME, id: ID });
    const rotate = (rotation_id: string) => service.rotateSecret({ owner_id: ME, id: ID, rotation_id });
    const rotated = await rotate('r1');
    expect(rotated).toEqual({ secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/), previous_expires_at: 1_700_086_400 });
    expect(rotated.secret).not.toBe(old);
    expect(await rotate('r1')).toEqual(rotated);
    expect(await service.getSecret({ owner_id: ME, id: ID })).toEqual({ secret: rotated.secret });
    expect((await rotate('r2')).secret).not.toBe(rotated.secret);
  });

  it('does not exist for another account', async () => {
    await create();
    const reference = { owner_id: OTHER, id: ID } as const;
    for (const call of [
      () => service.get(reference),
      () => service.update(reference),
      () => service.delete(reference),
      () => service.getSecret(reference),
      () => service.rotateSecret({ ...reference, rotation_id: 'r' }),
    ])
      await expect(call()).rejects.toMatchObject({ code: 'not_found' });
    expect(stored.rows.size).toBe(1);
  });

  it('is deleted once', async () => {
    await create();
    await service.delete({ owner_id: ME, id: ID });
    await expect(service.delete({ owner_id: ME, id: ID })).rejects.toMatchObject({ code: 'not_found' });
  });
});
