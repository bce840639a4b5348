import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { ApiResponse, Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { sample } from './support/generate.js';
import { operations, resolved } from './support/openapi.js';
import { outsideKafka } from './support/outside-kafka.js';
import { joinSystem, type System } from './support/system.js';
import { needing, topic } from './support/target.js';

let system: System;
let owner: Api;
let otherAccount: Api;
/** Ids that belong to the owner, by the collection before them in a path. */
const ids: Record<string, string> = {};
/** Ids of the same kinds that never existed. */
const never: Record<string, string> = {
  sources: 'dc_000000000000000000',
  webhooks: 'wh_000000000000000000',
  workflows: 'p_000000000000000000',
  components: 'sc_000000000000000000',
  deliveries: 'del_000000000000000000',
  connections: 'apn_000000000000000000',
  keys: 'key_000000000000000000',
  replays: 'rpl_000000000000000000',
  props: 'prop',
  events: '1763715600123-40960',
  componentKeys: 'island-that-never-was',
};
let ownComponent: string;

const CODE = "export default { name: 'Island', run() {} }";
const CONNECTED = `export default {
  name: 'Connected', key: 'island-${Date.now()}',
  props: { island: { type: 'app', app: 'island' }, choice: { type: 'string', optional: true, options() { return [this.island.$auth.key]; } } },
  run() {},
};`;
/** Resources of the other account. */
const own: Partial<Record<'source' | 'webhook' | 'connected', string>> = {};
const replay = (emitter_id: string, listener_id: string) => ({ emitter_id, listener_id, from: 0, to: 1, dry_run: true });
const WORKFLOW = `p_${Date.now().toString(36)}`;

beforeAll(async () => {
  system = await joinSystem();
  [owner, otherAccount] = [await system.account(), await system.account()];
  const source = await owner.source(CODE);
  Object.assign(ids, {
    sources: source.id,
    components: source.component_id,
    webhooks: await owner.webhook('http://localhost:1/'),
    workflows: WORKFLOW,
    replays: (await owner.post('/replays', { emitter_id: source.id, from: 0, to: 1, listener_id: source.id })).body.data.id as string,
    props: 'prop',
    events: '1763715600123-40960',
    keys: (await owner.post('/keys', {})).body.data.id as string,
  });
  ids.connections = (await owner.post('/connections', { app: 'island', credentials: { key: 'x' } })).body.data.id;
  await owner.subscribe(source.id, ids.webhooks!);
  const ofOther = await otherAccount.source(CODE);
  ownComponent = ofOther.component_id;
  Object.assign(own, {
    source: ofOther.id,
    webhook: await otherAccount.webhook('http://localhost:1/'),
    connected: (await otherAccount.source(CONNECTED.replace("key: '", "key: 'other-"))).id,
  });
  ids.componentKeys = /key: '([^']+)'/.exec(CONNECTED)![1]!;
  await owner.source(CONNECTED, { external_id: 'island' });
  const producer = outsideKafka(system.brokers).producer();
  await producer.connect();
  await producer.send({
    topic: topic('workflows'),
    messages: [{ key: WORKFLOW, value: JSON.stringify({ id: WORKFLOW, owner_id: owner.account.id, name: 'w', active: true }) }],
  });
  // the webhook's endpoint is closed, so its delivery fails and is kept
  await producer.send({ topic: topic('events'), messages: [{ key: source.id, value: '{}' }] });
  await producer.disconnect();
  await eventually(async () => expect((await owner.get(`/workflows/${WORKFLOW}/event_summaries`)).status).toBe(200));
  ids.deliveries = await eventually(async () => (await owner.get(`/webhooks/${ids.webhooks}/deliveries`)).body.data[0].id as string);
});
afterAll(() => system?.stop());

/** Values of fields that must fit something. */
const FITTING = () => ({ component_id: ownComponent, name: 'n', url: 'https://example.com/' });

/** The registry belongs to every account. */
const ofAccounts = operations.filter(({ path }) => path.includes('{') && !path.startsWith('/v1/components/registry/'));

const leveled = (response: ApiResponse, known: Record<string, string>) =>
  Object.values(known).reduce((text, id) => text.replaceAll(id, '?'), response.text.replace(response.body.request_id as string, '!'));

needing('accounts').describe('the resources of an account do not exist for another account', () => {
  it.each(ofAccounts.map((operation) => [`${operation.method} ${operation.path}`, operation] as const))('%s', async (_, operation) => {
    const call = async (known: Record<string, string>): Promise<ApiResponse> => {
      const path = operation.path.slice('/v1'.length).replace(/(\w+)\/\{\w+\}/g, (_match, kind: string) => {
        if (!known[kind]) throw new Error(`this test needs an id for /${kind}/`);
        return `${kind}/${known[kind]}`;
      });
      const required = operation.parameters.filter((parameter) => parameter.in === 'query' && parameter.required);
      const query = new URLSearchParams(
        required.map(({ name, schema, ...more }): [string, string] => [name, String(sample({ ...more, ...schema }))]),
      );
      const body = operation.body && {
        ...(sample(operation.body) as object),
        ...Object.fromEntries(Object.entries(FITTING()).filter(([name]) => resolved(operation.body!).properties?.[name])),
      };
      return otherAccount.send(operation.method, `${path}?${query.toString()}`, body);
    };
    const [foreign, none] = [await call(ids), await call(never)];
    expect([foreign.status, none.status]).toEqual([404, 404]);
    expect(leveled(foreign, ids)).toBe(leveled(none, never));
  });

  const foreignOrNone = async (send: (id: (kind: string) => string) => Promise<ApiResponse>): Promise<[ApiResponse, ApiResponse]> => [
    await send((kind) => ids[kind]!),
    await send((kind) => never[kind]!),
  ];

  it.each<[string, (id: (kind: string) => string) => Promise<ApiResponse>]>([
    ['the emitter of a subscription', (id) => otherAccount.post(`/subscriptions?emitter_id=${id('sources')}&listener_id=${own.webhook}`)],
    ['a workflow as the emitter', (id) => otherAccount.post(`/subscriptions?emitter_id=${id('workflows')}&listener_id=${own.webhook}`)],
    ['the listener of a subscription', (id) => otherAccount.post(`/subscriptions?emitter_id=${own.source}&listener_id=${id('webhooks')}`)],
    ['a source as the listener', (id) => otherAccount.post('/subscriptions', { emitter_id: own.source, listener_id: id('sources') })],
    ['a workflow as the listener', (id) => otherAccount.post('/subscriptions', { emitter_id: own.source, listener_id: id('workflows') })],
    ['the listener of all emitters', (id) => otherAccount.post(`/subscriptions?emitter_id=dc_*&listener_id=${id('webhooks')}`)],
    ['the listener of an auto-subscription', (id) => otherAccount.post(`/auto_subscriptions?event_name=x&listener_id=${id('sources')}`)],
    ['a subscription to delete', (id) => otherAccount.delete(`/subscriptions?emitter_id=${id('sources')}&listener_id=${id('webhooks')}`)],
    ['the component of a new source', (id) => otherAccount.post('/sources', { component_id: id('components') })],
    ['the component of a changed source', (id) => otherAccount.put(`/sources/${own.source}`, { component_id: id('components') })],
    ['the component of a patched source', (id) => otherAccount.patch(`/sources/${own.source}`, { component_id: id('components') })],
    [
      'the connection of a new source',
      (id) =>
        otherAccount.post('/sources', { component_code: CONNECTED, configured_props: { island: { authProvisionId: id('connections') } } }),
    ],
    [
      'the connection of a changed source',
      (id) => otherAccount.patch(`/sources/${own.connected}`, { configured_props: { island: { authProvisionId: id('connections') } } }),
    ],
    [
      'the connection of a call of options()',
      (id) =>
        otherAccount.post(`/sources/${own.connected}/props/choice/options`, {
          configured_props: { island: { authProvisionId: id('connections') } },
        }),
    ],
    ['the emitter of a replay', (id) => otherAccount.post('/replays', replay(id('sources'), own.webhook!))],
    ['the listener of a replay', (id) => otherAccount.post('/replays', replay(own.source!, id('webhooks')))],
    ['a delivery of another webhook', (id) => otherAccount.post(`/webhooks/${own.webhook}/deliveries/${id('deliveries')}/retry`)],
    ['an event of another source', (id) => otherAccount.get(`/sources/${own.source}/events/${id('events')}/deliveries`)],
    ['the key of a component', (id) => otherAccount.get(`/components/${id('componentKeys')}`)],
    ['the key of a component of the registry', (id) => otherAccount.post('/sources', { key: id('componentKeys') })],
    ['a component’s key in the registry', (id) => otherAccount.get(`/components/registry/${id('componentKeys')}`)],
  ])('as %s, in a body, a query or below its resources', async (_, send) => {
    const [foreign, none] = await foreignOrNone(send);
    expect(foreign.status).toBe(none.status);
    expect([400, 404]).toContain(foreign.status);
    expect(leveled(foreign, ids)).toBe(leveled(none, never));
  });

  it('as an external id or a cursor finds none of them', async () => {
    const cursor = Buffer.from(ids.sources!).toString('base64url');
    const mine = (await otherAccount.get('/users/me/sources?limit=100')).body.data.map(({ id }: { id: string }) => id);
    for (const query of [`after=${cursor}`, `before=${cursor}`, `external_id=island`, `after=${cursor}&external_id=island`]) {
      const { status, body } = await otherAccount.get(`/users/me/sources?limit=100&${query}`);
      expect(status).toBe(200);
      expect(mine).toEqual(expect.arrayContaining(body.data.map(({ id }: { id: string }) => id)));
    }
  });

  it('are not chosen by fields that no body has', async () => {
    const { id } = owner.account;
    for (const field of [
      'owner_id',
      'user_id',
      'account_id',
      'id',
      'new_component_id',
      'endpoint_key',
      'version',
      '__proto__',
      'constructor',
    ]) {
      const value = field === 'id' ? ids.sources : id;
      for (const [path, body] of [
        ['/sources', { component_code: CODE }],
        ['/webhooks', { url: 'https://example.com/' }],
        ['/connections', { app: 'a', credentials: { a: 'b' } }],
        ['/keys', {}],
        ['/components', { component_code: CODE }],
      ] as const) {
        const text = JSON.stringify({ ...body, ['?']: value }).replace('"?"', JSON.stringify(field));
        const response = await otherAccount.raw('POST', path, text, { 'content-type': 'application/json' });
        expect({ path, field, status: response.status }).toEqual({ path, field, status: 400 });
      }
    }
    const webhook = await otherAccount.post(`/webhooks?url=https://example.com/&owner_id=${id}&user_id=${id}`);
    expect(webhook.body.data.user_id).toBe(otherAccount.account.id);
  });

  it('are separate for each idempotency key', async () => {
    const headers = { 'idempotency-key': 'the-same' };
    const [first, second] = [
      await owner.send('POST', '/keys', { name: 'k' }, headers),
      await otherAccount.send('POST', '/keys', { name: 'k' }, headers),
    ];
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(second.headers['idempotency-replayed']).toBeUndefined();
    expect(second.body.data.key).not.toBe(first.body.data.key);
    expect((await owner.send('POST', '/keys', { name: 'k' }, headers)).body.data.key).toBe(first.body.data.key);
  });

  it('are all unchanged afterwards', async () => {
    for (const path of [`/sources/${ids.sources}`, `/webhooks/${ids.webhooks}`, `/components/${ids.components}`])
      expect((await owner.get(path)).status).toBe(200);
    expect((await owner.get(`/sources/${ids.sources}/event_summaries`)).body.page_info.total_count).toBe(1);
  });
});
