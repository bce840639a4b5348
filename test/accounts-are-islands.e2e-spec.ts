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
};
let ownComponent: string;

const CODE = "export default { name: 'Island', run() {} }";
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
  ownComponent = (await otherAccount.source(CODE)).component_id;
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
    const leveled = (response: ApiResponse, known: Record<string, string>) =>
      Object.values(known).reduce((text, id) => text.replaceAll(id, '?'), response.text.replace(response.body.request_id as string, '!'));
    expect([foreign.status, none.status]).toEqual([404, 404]);
    expect(leveled(foreign, ids)).toBe(leveled(none, never));
  });

  it('are all unchanged afterwards', async () => {
    for (const path of [`/sources/${ids.sources}`, `/webhooks/${ids.webhooks}`, `/components/${ids.components}`])
      expect((await owner.get(path)).status).toBe(200);
    expect((await owner.get(`/sources/${ids.sources}/event_summaries`)).body.page_info.total_count).toBe(1);
  });
});
