import { beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { Database } from '#database';
import { EmitterDirectory } from '#emitters';
import { RoutingConfig } from '../routing.config.js';
import { WebhooksRepository } from '../webhooks/webhooks.repository.js';
import { AutoSubscriptionsRepository } from './auto-subscriptions.repository.js';
import { SubscriptionsRepository } from './subscriptions.repository.js';
import { SubscriptionsService } from './subscriptions.service.js';

const ME = 'u_000000000000000001';
const OTHER = 'u_000000000000000002';
const SOURCE = 'dc_000000000000000001';
const WORKFLOW = 'p_000000000000000001';
const WEBHOOK = 'wh_000000000000000001';
const THEIRS = { source: 'dc_000000000000000002', webhook: 'wh_000000000000000002' };
const OWNERS: Record<string, string> = { [SOURCE]: ME, [WORKFLOW]: ME, [WEBHOOK]: ME, [THEIRS.source]: OTHER, [THEIRS.webhook]: OTHER };

describe('a subscription', () => {
  let service: SubscriptionsService;
  let created: string[][];
  let lookedUp: string[];

  beforeEach(async () => {
    created = [];
    lookedUp = [];
    const owns = async (_transaction: unknown, ownerId: string, id: string) => OWNERS[id] === ownerId;
    const create = async (_transaction: unknown, ...row: string[]) => (created.push(row), row);
    const createAuto = async (_transaction: unknown, ...[ownerId, listenerId, eventName, most]: [string, string, string, number]) => {
      expect(most).toBe(7);
      return create(_transaction, ownerId, listenerId, eventName);
    };
    const deleteOne = async (...row: string[]) => created.filter((each) => each.join() === row.join());
    const module = await Test.createTestingModule({
      providers: [
        SubscriptionsService,
        { provide: Database, useValue: { transaction: (work: (transaction: unknown) => unknown) => work({}) } },
        { provide: SubscriptionsRepository, useValue: { create, delete: deleteOne } },
        { provide: AutoSubscriptionsRepository, useValue: { create: createAuto, delete: deleteOne, exist: async () => false } },
        { provide: WebhooksRepository, useValue: { hold: owns } },
        { provide: RoutingConfig, useValue: RoutingConfig.read({ SLUICE_MAX_AUTO_SUBSCRIPTIONS: '7' }) },
        { provide: EmitterDirectory, useValue: { hold: owns, find: async (ids: string[]) => void lookedUp.push(...ids) } },
      ],
    }).compile();
    service = module.get(SubscriptionsService);
  });

  const subscribe = (emitter_id: string, listener_id: string, event_name?: string) =>
    service.create({ owner_id: ME, emitter_id, listener_id, event_name });

  it.each([
    ['a source', SOURCE, [SOURCE]],
    ['a workflow', WORKFLOW, [WORKFLOW]],
    ['all sources', 'dc_*', []],
    ['all workflows', 'p_*', []],
    ['everything of the account', ME, []],
  ])('connects %s with a webhook, and looks up only what may be new', async (_, emitter, known) => {
    await subscribe(emitter, WEBHOOK);
    expect({ created, lookedUp }).toEqual({ created: [[ME, emitter, WEBHOOK, '']], lookedUp: known });
  });

  it('connects a source with a source and a workflow, which may be new themselves', async () => {
    await subscribe(SOURCE, WORKFLOW, '$errors');
    expect({ created, lookedUp }).toEqual({ created: [[ME, SOURCE, WORKFLOW, '$errors']], lookedUp: [SOURCE, WORKFLOW] });
  });

  it.each([
    ['another account’s source', THEIRS.source, WEBHOOK],
    ['another account’s whole output', OTHER, WEBHOOK],
    ['a source that does not exist', 'dc_000000000000000009', WEBHOOK],
    ['another account’s webhook as its listener', SOURCE, THEIRS.webhook],
    ['another account’s source as its listener', SOURCE, THEIRS.source],
  ])('is not created with %s', async (_, emitter, listener) => {
    await expect(subscribe(emitter, listener)).rejects.toMatchObject({ code: 'not_found' });
    expect(created).toEqual([]);
  });

  it.each([
    ['an emitter that is not an id', 'x', WEBHOOK],
    ['a pattern as its listener', SOURCE, 'dc_*'],
  ])('is malformed with %s, and nothing is looked up', async (_, emitter, listener) => {
    for (const attempt of [subscribe(emitter, listener), service.delete({ owner_id: ME, emitter_id: emitter, listener_id: listener })])
      await expect(attempt).rejects.toMatchObject({ code: 'invalid' });
    expect(lookedUp).toEqual([]);
  });

  it('is deleted where its stream is the stored one', async () => {
    await subscribe(SOURCE, WEBHOOK, 'mine');
    const reference = { owner_id: ME, emitter_id: SOURCE, listener_id: WEBHOOK } as const;
    await expect(service.delete({ ...reference, event_name: 'nope' })).rejects.toMatchObject({
      code: 'not_found',
      message: `subscription of ${WEBHOOK} to ${SOURCE} with the event_name "nope" not found; GET /v1/users/me/subscriptions shows the stored ones`,
    });
    expect(await service.delete({ ...reference, event_name: 'mine' })).toHaveLength(1);
  });

  describe('to every emitter that is created later', () => {
    const auto = (listener_id: string, event_name = '$errors') => service.createAuto({ owner_id: ME, listener_id, event_name });

    it.each([
      ['a webhook', WEBHOOK, []],
      ['a workflow', WORKFLOW, [WORKFLOW]],
    ])('is created for %s', async (_, listener, known) => {
      await auto(listener);
      expect({ created, lookedUp }).toEqual({ created: [[ME, listener, '$errors']], lookedUp: known });
    });

    it.each([
      ['another account’s webhook', THEIRS.webhook, 'not_found'],
      ['a listener that is not an id', 'dc_*', 'invalid'],
    ])('is not created for %s', async (_, listener, code) => {
      await expect(auto(listener)).rejects.toMatchObject({ code });
      await expect(service.deleteAuto({ owner_id: ME, listener_id: listener, event_name: '$errors' })).rejects.toMatchObject({ code });
      expect(created).toEqual([]);
    });

    it('is deleted where there is one', async () => {
      await auto(WEBHOOK);
      expect(await service.deleteAuto({ owner_id: ME, listener_id: WEBHOOK, event_name: '$errors' })).toHaveLength(1);
      await expect(service.deleteAuto({ owner_id: ME, listener_id: WEBHOOK, event_name: 'nope' })).rejects.toMatchObject({
        code: 'not_found',
        message: `auto-subscription of ${WEBHOOK} with the event_name "nope" not found; GET /v1/users/me/auto_subscriptions shows the stored ones`,
      });
    });
  });
});
