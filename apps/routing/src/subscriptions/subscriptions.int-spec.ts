import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { newId, type SluiceError, type UserId } from '#contracts';
import { untilLocked } from '#testing';
import { RoutingFixture } from '../routing-fixture-for-tests.js';
import { RoutingWebhookDependents } from '../routing-webhook-dependents.js';
import { WebhookRow } from '../webhooks/webhook.entity.js';
import { SubscriptionsRepository } from './subscriptions.repository.js';

let routing: RoutingFixture;
let owner: UserId;
beforeAll(async () => {
  routing = await RoutingFixture.open();
});
afterAll(() => routing.close());
beforeEach(() => {
  owner = newId('user');
});

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'no error',
    (error: SluiceError) => error.code,
  );
const names = async () =>
  (await routing.service.list({ owner_id: owner })).map(
    ({ emitter_id, listener_id, event_name }) => `${emitter_id} ${listener_id} ${event_name}`,
  );
const soon = () => Date.now() + 1000;

describe('a subscription', () => {
  it('is made once, and listed newest first', async () => {
    const [source, webhook] = [await routing.source(owner), await routing.webhook(owner)];
    const first = await routing.service.create({ owner_id: owner, emitter_id: source, listener_id: webhook });
    expect(first).toEqual({ id: expect.stringMatching(/^sub_/), emitter_id: source, listener_id: webhook, event_name: '' });
    const alias = await routing.service.create({ owner_id: owner, emitter_id: source, listener_id: webhook, event_name: 'default' });
    expect(alias.id).not.toBe(first.id);
    expect(await routing.service.create({ owner_id: owner, emitter_id: source, listener_id: webhook, event_name: '' })).toEqual(first);
    expect(await routing.service.list({ owner_id: owner })).toEqual([alias, first]);
    expect(await routing.service.list({ owner_id: owner, before: alias.id })).toEqual([first]);
    expect(await routing.service.list({ owner_id: newId('user') })).toEqual([]);
  });

  it('takes sources, workflows, globs and the account itself as emitters, and sources, workflows and webhooks as listeners', async () => {
    const [source, workflow, webhook] = [await routing.source(owner), await routing.workflow(owner), await routing.webhook(owner)];
    for (const emitter_id of [source, workflow, 'dc_*', 'p_*', owner]) {
      for (const listener_id of [source, workflow, webhook]) await routing.service.create({ owner_id: owner, emitter_id, listener_id });
    }
    expect(await routing.service.list({ owner_id: owner })).toHaveLength(15);
  });

  it('is refused for what does not exist or is not the own', async () => {
    const other = newId('user');
    const [source, webhook] = [await routing.source(owner), await routing.webhook(owner)];
    const [theirs, theirWebhook, gone] = [
      await routing.source(other),
      await routing.webhook(other),
      await routing.source(owner, { deleted: true }),
    ];
    for (const emitter_id of [theirs, gone, newId('source'), newId('workflow'), other]) {
      expect(await codeOf(routing.service.create({ owner_id: owner, emitter_id, listener_id: webhook }))).toBe('not_found');
    }
    for (const listener_id of [theirs, gone, theirWebhook, newId('webhook'), newId('workflow')]) {
      expect(await codeOf(routing.service.create({ owner_id: owner, emitter_id: source, listener_id }))).toBe('not_found');
    }
    expect(await codeOf(routing.service.create({ owner_id: owner, emitter_id: 'x', listener_id: webhook }))).toBe('invalid');
    expect(await names()).toEqual([]);
  });

  it('is made with an emitter that only the catalog knows', async () => {
    const [source, webhook] = [newId('source'), await routing.webhook(owner)];
    routing.catalog.set(source, routing.state(owner, source));
    expect(await codeOf(routing.service.create({ owner_id: owner, emitter_id: source, listener_id: webhook }))).toBe('no error');
  });

  it('is made again if it is deleted at the moment in which it is found', async () => {
    const reference = { owner_id: owner, emitter_id: await routing.source(owner), listener_id: await routing.webhook(owner) };
    const first = await routing.service.create(reference);
    const { subscriptions } = routing;
    const add = jest.spyOn(subscriptions, 'add').mockImplementationOnce(async (...args) => {
      await SubscriptionsRepository.prototype.add.apply(subscriptions, args);
      await routing.service.delete(reference);
    });
    const second = await routing.service.create(reference).finally(() => add.mockRestore());
    expect(second.id).not.toBe(first.id);
    expect(await routing.service.list({ owner_id: owner })).toEqual([second]);
  });

  it('is deleted by the name that it was made with', async () => {
    const [source, webhook] = [await routing.source(owner), await routing.webhook(owner)];
    const made = await routing.service.create({ owner_id: owner, emitter_id: source, listener_id: webhook, event_name: 'default' });
    const reference = { owner_id: owner, emitter_id: source, listener_id: webhook };
    expect(await codeOf(routing.service.delete(reference))).toBe('not_found');
    expect(await codeOf(routing.service.delete({ ...reference, owner_id: newId('user'), event_name: 'default' }))).toBe('not_found');
    expect(await routing.service.delete({ ...reference, event_name: 'default' })).toEqual([made]);
    expect(await codeOf(routing.service.delete({ ...reference, event_name: 'default' }))).toBe('not_found');
  });

  it('goes with its emitter and with its listener', async () => {
    const [source, workflow, webhook] = [await routing.source(owner), await routing.workflow(owner), await routing.webhook(owner)];
    await routing.service.create({ owner_id: owner, emitter_id: source, listener_id: webhook });
    await routing.service.create({ owner_id: owner, emitter_id: 'dc_*', listener_id: workflow });
    await routing.service.create({ owner_id: owner, emitter_id: workflow, listener_id: source });
    await routing.service.createAuto({ owner_id: owner, listener_id: workflow, event_name: '' });
    await routing.service.createAuto({ owner_id: owner, listener_id: webhook, event_name: '' });
    await routing.directory.learn(routing.state(owner, source, { deleted: true, version: 2 }));
    expect(await names()).toEqual([`dc_* ${workflow} `]);
    await routing.directory.learn(routing.state(owner, workflow, { deleted: true, version: 2 }));
    expect(await names()).toEqual([]);
    await routing.service.create({ owner_id: owner, emitter_id: owner, listener_id: webhook });
    await routing.webhooksService.delete({ owner_id: owner, id: webhook });
    expect(await names()).toEqual([]);
    expect(await routing.service.listAuto(owner)).toEqual([]);
  });

  it('is not listed and not found after its emitter was deleted, and returns if the deletion is undone', async () => {
    const [source, webhook] = [await routing.source(owner), await routing.webhook(owner)];
    const reference = { owner_id: owner, emitter_id: source, listener_id: webhook };
    const made = await routing.service.create(reference);
    await routing.directory.learn(routing.state(owner, source, { deleted: true, version: 2 }));
    expect(await names()).toEqual([]);
    expect(await codeOf(routing.service.delete(reference))).toBe('not_found');
    // by a restore of the catalog
    await routing.directory.learn(routing.state(owner, source, { version: 3, created_at_ms: 1 }));
    expect(await routing.service.list({ owner_id: owner })).toEqual([made]);
    await routing.directory.learn(routing.state(owner, source, { deleted: true, version: 4 }));
    await routing.directory.learn(routing.state(owner, source, { version: 5, created_at_ms: Date.now() + 60_000 }));
    expect(await names()).toEqual([]);
    expect(await codeOf(routing.service.create(reference))).toBe('no error');
  });

  it('is not made while its emitter is being deleted for long: requests that wait would take all connections', async () => {
    const [source, webhook] = [await routing.source(owner), await routing.webhook(owner)];
    await routing.database.transaction(async (transaction) => {
      await transaction.query('UPDATE emitter SET deleted = true WHERE id = $1', [source]);
      const made = routing.service.create({ owner_id: owner, emitter_id: source, listener_id: webhook });
      await expect(made).rejects.toMatchObject({ code: '55P03' });
    });
  });

  it('is not left behind when it is made while its listener goes', async () => {
    for (let n = 0; n < 20; n++) {
      const [source, webhook] = [await routing.source(owner), await routing.webhook(owner)];
      await Promise.allSettled([
        routing.service.create({ owner_id: owner, emitter_id: source, listener_id: webhook }),
        routing.service.createAuto({ owner_id: owner, listener_id: source }),
        routing.webhooksService.delete({ owner_id: owner, id: webhook }),
        routing.directory.learn(routing.state(owner, source, { deleted: true, version: 2 })),
      ]);
    }
    expect(await names()).toEqual([]);
    expect(await routing.service.listAuto(owner)).toEqual([]);
  });
});

describe('an auto-subscription', () => {
  it('is made once, listed, and deleted by its names', async () => {
    const webhook = await routing.webhook(owner);
    const reference = { owner_id: owner, listener_id: webhook, event_name: 'default' };
    const made = await routing.service.createAuto(reference);
    expect(made).toEqual({ id: expect.stringMatching(/^asub_/), event_name: 'default', listener_id: webhook });
    expect(await routing.service.createAuto(reference)).toEqual(made);
    expect(await routing.service.listAuto(owner)).toEqual([made]);
    expect(await codeOf(routing.service.deleteAuto({ ...reference, event_name: '' }))).toBe('not_found');
    expect(await routing.service.deleteAuto(reference)).toEqual([made]);
    expect(await routing.service.listAuto(owner)).toEqual([]);
  });

  it('is refused beyond the limit of its account, also among others at the same time, but can be repeated', async () => {
    const webhook = await routing.webhook(owner);
    const create = (event_name: string) => routing.service.createAuto({ owner_id: owner, listener_id: webhook, event_name });
    await create('first');
    const limit = jest.replaceProperty(routing.config, 'maxAutoSubscriptions', 3);
    try {
      const codes = await Promise.all(Array.from({ length: 10 }, (_, n) => codeOf(create(`e${n}`))));
      expect(codes.sort()).toEqual([...Array(8).fill('conflict'), ...Array(2).fill('no error')]);
      await expect(create('next')).rejects.toThrow('this account has 3 auto-subscriptions; the limit is 3');
      expect(await routing.service.listAuto(owner)).toHaveLength(3);
      await create('first');
    } finally {
      limit.restore();
    }
  });

  it('covers what was created before its deletion, also if its fact arrives later', async () => {
    const webhook = await routing.webhook(owner);
    const reference = { owner_id: owner, listener_id: webhook, event_name: '' };
    const create = () => {
      const id = newId('source');
      routing.catalog.set(id, routing.state(owner, id, { created_at_ms: soon() }));
      return id;
    };
    await routing.service.createAuto(reference);
    const [first, second] = [create(), create()];
    const subscription = { owner_id: owner, emitter_id: first, listener_id: webhook };
    expect(await routing.service.delete(subscription)).toHaveLength(1);
    expect(await codeOf(routing.service.delete(subscription))).toBe('not_found');
    expect(await names()).toEqual([`${second} ${webhook} `]);
    const third = create();
    await routing.service.deleteAuto(reference);
    create();
    expect(await names()).toEqual([`${third} ${webhook} `, `${second} ${webhook} `]);
  });

  it('is not deleted while the catalog does not respond, but subscriptions are listed', async () => {
    const webhook = await routing.webhook(owner);
    const reference = { owner_id: owner, listener_id: webhook, event_name: '' };
    await routing.service.createAuto(reference);
    routing.catalogResponds = false;
    try {
      expect(await codeOf(routing.service.deleteAuto(reference))).toBe('unavailable');
      expect(await names()).toEqual([]);
    } finally {
      routing.catalogResponds = true;
    }
    expect(await routing.service.deleteAuto(reference)).toHaveLength(1);
  });

  it('covers what is created later, and nothing else', async () => {
    const webhook = await routing.webhook(owner);
    const old = await routing.source(owner);
    await routing.service.createAuto({ owner_id: owner, listener_id: webhook, event_name: '$errors' });
    const learntLate = await routing.source(owner, { created_at_ms: Date.now() - 60_000 });
    const [later, workflow] = [
      await routing.source(owner, { created_at_ms: soon() }),
      await routing.workflow(owner, { created_at_ms: soon() }),
    ];
    await routing.source(newId('user'), { created_at_ms: soon() });
    expect(await names()).toEqual([`${workflow} ${webhook} $errors`, `${later} ${webhook} $errors`]);
    expect(await names()).not.toContain(old);
    expect(await names()).not.toContain(learntLate);
  });

  it('leaves what it made when it goes, and makes it once', async () => {
    const webhook = await routing.webhook(owner);
    await routing.service.createAuto({ owner_id: owner, listener_id: webhook });
    const created_at_ms = soon();
    const source = await routing.source(owner, { created_at_ms });
    await routing.service.delete({ owner_id: owner, emitter_id: source, listener_id: webhook });
    // a later change of the emitter does not restore the removed subscription
    await routing.directory.learn(routing.state(owner, source, { active: false, version: 2, created_at_ms }));
    expect(await names()).toEqual([]);
    const other = await routing.source(owner, { created_at_ms: soon() });
    await routing.service.deleteAuto({ owner_id: owner, listener_id: webhook });
    expect(await names()).toEqual([`${other} ${webhook} `]);
  });

  it('covers a workflow that was removed and registered again, and what named it before is gone', async () => {
    const webhook = await routing.webhook(owner);
    const workflow = await routing.workflow(owner, { created_at_ms: 1000 });
    await routing.service.create({ owner_id: owner, emitter_id: workflow, listener_id: webhook, event_name: 'x' });
    await routing.service.createAuto({ owner_id: owner, listener_id: webhook });
    await routing.directory.learn(routing.state(owner, workflow, { version: 3, created_at_ms: soon() }));
    expect(await names()).toEqual([`${workflow} ${webhook} `]);
    expect((await routing.directory.find([workflow])).get(workflow)?.deleted).toBe(false);
  });

  it('does not subscribe its listener to a new emitter while the listener goes', async () => {
    const [listener, source] = [await routing.source(owner), newId('source')];
    await routing.service.createAuto({ owner_id: owner, listener_id: listener });
    const gone = { state: routing.state(owner, listener, { deleted: true, version: 2 }), first: false };
    let learnt: Promise<boolean> | undefined;
    await routing.database.transaction(async (transaction) => {
      await routing.changes.emittersChanged(transaction, [gone]);
      learnt = routing.directory.learn(routing.state(owner, source, { created_at_ms: soon() }));
      await untilLocked(routing.own);
    });
    await learnt;
    expect(await names()).toEqual([]);
  });

  it('misses no emitter that is learnt of while it is made', async () => {
    for (let n = 0; n < 20; n++) {
      const webhook = await routing.webhook(owner);
      const source = newId('source');
      const [made] = await Promise.all([
        routing.service.createAuto({ owner_id: owner, listener_id: webhook, event_name: String(n) }),
        routing.directory.learn(routing.state(owner, source, { created_at_ms: Date.now() + 10_000 })),
      ]);
      // its time is that of its turn: either the emitter saw it, or it is the younger of the two, which is not the case here
      expect(made.event_name).toBe(String(n));
      const covered = (await names()).includes(`${source} ${webhook} ${n}`);
      const { rows } = await routing.database.query<{ created_at_ms: number }>(
        'SELECT created_at_ms FROM auto_subscription WHERE id = $1',
        [made.id],
      );
      expect(covered || (rows[0]?.created_at_ms ?? 0) > 0).toBe(true);
    }
  });
});

it('a webhook that is deleted leaves no subscription, also if a source is created meanwhile', async () => {
  const [webhook, other] = [await routing.webhook(owner), await routing.webhook(owner)];
  for (const listener_id of [webhook, other]) await routing.service.createAuto({ owner_id: owner, listener_id, event_name: '' });
  const listenersOf = async () => (await routing.service.list({ owner_id: owner })).map(({ listener_id }) => listener_id);
  await routing.source(owner);
  expect((await listenersOf()).sort()).toEqual([webhook, other].sort());
  const [begun, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const deletion = routing.database.transaction(async (transaction) => {
    await transaction.rows(WebhookRow).delete({ id: webhook });
    await new RoutingWebhookDependents(routing.backlogs).webhookDeleted(transaction, owner, webhook);
    begun.resolve();
    await end.promise;
  });
  await begun.promise;
  await routing.source(owner);
  end.resolve();
  await deletion;
  expect(await listenersOf()).toEqual([other, other]);
});
