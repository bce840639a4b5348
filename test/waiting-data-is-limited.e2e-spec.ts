import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type Api, http } from './support/api.js';
import { eventually } from './support/eventually.js';
import { Receiver } from './support/receiver.js';
import { startSystem, type System } from './support/system.js';
import { can, needing } from './support/target.js';

const MIB = 1024 * 1024;
const LIMIT = 4 * MIB;
const EVENT_BYTES = 256 * 1024;
const CODE = "export default { name: 'echo', props: { http: '$.interface.http' }, run({ body }) { this.$emit(body); } }";

let system: System;
let receiver: Receiver;
beforeAll(async () => {
  const limit = { SLUICE_MAX_WAITING_BYTES: String(LIMIT) };
  const variables = can('variables')
    ? { routing: { ...limit, SLUICE_RETRY_SCHEDULE: '5s,5s,5s,5s,5s,5s,5s,5s,5s,5s,5s,5s,5s,5s,5s,5s' }, runtime: limit }
    : {};
  [system, receiver] = await Promise.all([startSystem({ variables }), Receiver.start()]);
});
afterAll(async () => {
  await Promise.all([system?.stop(), receiver?.close()]);
});

/** An account with a source whose events a webhook receives. */
async function tenant(path: string) {
  const api = await system.account();
  const { id, configured_props } = await api.source(CODE);
  const webhook = await api.webhook(`${receiver.url}${path}`);
  await api.subscribe(id, webhook);
  const filler = 'x'.repeat(EVENT_BYTES);
  const publish = (n: number) =>
    api.raw('POST', `/sources/${id}/events`, JSON.stringify({ n, filler }), { 'content-type': 'application/json' });
  /** In the order of their first attempts. */
  const received = () => [
    ...new Set(receiver.received.filter((each) => each.path === `/${path}`).map(({ body }) => (body as { n: number }).n)),
  ];
  return { api, id: id as string, webhook, endpoint: configured_props.http.endpoint_url as string, publish, received };
}

const call = (endpoint: string, n: number) =>
  http('POST', endpoint, { body: JSON.stringify({ n }), headers: { 'content-type': 'application/json' } });
const deliveriesOf = async (api: Api, webhook: string, status: string) =>
  ((await api.get(`/webhooks/${webhook}/deliveries?limit=100`)).body.data as { id: string; status: string }[]).filter(
    (each) => each.status === status,
  );

needing('variables', 'accounts', 'receiver', 'control').describe('an account whose webhook fails', () => {
  it('can no longer send anything in at its limit, loses nothing, and continues when its receiver has recovered; others notice nothing', async () => {
    const [failing, other] = [await tenant('failing'), await tenant('other')];
    let fails = true;
    receiver.respondWith = ({ path }) => (fails && path === '/failing' ? 500 : 200);

    const acknowledged: number[] = [];
    // the runs of these wait while the account is full, so events that are published later may arrive first
    const calls = new Set<number>();
    const refused = await eventually(
      async () => {
        const response = await failing.publish(acknowledged.length);
        if (response.status === 202) acknowledged.push(acknowledged.length);
        expect(response.status).toBe(429);
        return response;
      },
      { withinMs: 60_000 },
    );
    expect(acknowledged.length * EVENT_BYTES).toBeGreaterThanOrEqual(LIMIT - EVENT_BYTES);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(refused.headers['content-type']).toContain('application/problem+json');
    expect(refused.body.detail).toMatch(/^\S+ MiB of deliveries of this account wait, and the limit is 4 MiB; .*webhooks/);

    // all that the account itself sends in
    const replay = { emitter_id: failing.id, listener_id: failing.webhook, from: 0, to: Math.floor(Date.now() / 1000) };
    expect((await failing.api.post('/replays', replay)).status).toBe(429);
    expect((await failing.api.post(`/sources/${failing.id}/run`, {})).status).toBe(429);
    await eventually(async () => {
      const { status, headers, body } = await call(failing.endpoint, acknowledged.length);
      // the runtime learns of it a few seconds later
      if (status === 200) {
        calls.add(acknowledged.length);
        acknowledged.push(acknowledged.length);
      }
      expect([status, Number(headers['retry-after']), body.error]).toEqual([429, 5, 'too much data of this account is waiting']);
    });
    // the oldest one, which has been attempted: another would lose its place in the order of first attempts
    const oldest = (await deliveriesOf(failing.api, failing.webhook, 'pending')).at(-1);
    expect((await failing.api.post(`/webhooks/${failing.webhook}/deliveries/${oldest!.id}/retry`, {})).status).toBe(202);

    // the counts are in the database
    await Promise.all((['routing', 'gateway'] as const).map((app) => system.apps.kill(app)));
    await Promise.all((['routing', 'gateway'] as const).map((app) => system.apps.whenReady(app)));
    await eventually(async () => {
      const { status } = await failing.publish(acknowledged.length);
      if (status === 202) acknowledged.push(acknowledged.length);
      expect(status).toBe(429);
    });

    for (const n of [0, 1]) expect((await other.publish(n)).status).toBe(202);
    expect((await call(other.endpoint, 2)).status).toBe(200);
    await eventually(() => expect(other.received()).toEqual([0, 1, 2]));

    fails = false;
    expect((await failing.api.put(`/webhooks/${failing.webhook}`, { active: true })).status).toBe(200);
    const callsLast = (numbers: number[]) => numbers.toSorted((a, b) => Number(calls.has(a)) - Number(calls.has(b)));
    await eventually(() => expect(callsLast(failing.received())).toEqual(callsLast(acknowledged)), { withinMs: 90_000 });
    await eventually(async () => expect(await deliveriesOf(failing.api, failing.webhook, 'pending')).toEqual([]), { withinMs: 90_000 });

    await eventually(async () => expect((await failing.publish(acknowledged.length)).status).toBe(202));
    await eventually(async () => expect((await call(failing.endpoint, acknowledged.length + 1)).status).toBe(200));
    await eventually(() => expect(failing.received().slice(acknowledged.length)).toEqual([acknowledged.length, acknowledged.length + 1]));
  });
});

needing('variables', 'accounts', 'receiver', 'logs').describe('an operator', () => {
  it('finds an account that is full, and one that no longer is, in the log', async () => {
    const one = await tenant('logged');
    receiver.respondWith = ({ path }) => (path === '/logged' ? 500 : 200);
    let n = 0;
    await eventually(async () => expect((await one.publish(n++)).status).toBe(429), { withinMs: 60_000 });
    const lines = async () =>
      (await system.apps.logs('routing'))
        .filter((line) => line.includes(one.api.account.id))
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(await lines()).toContainEqual(expect.objectContaining({ msg: 'account.full', limit: LIMIT }));
    expect((await one.api.delete(`/webhooks/${one.webhook}`)).status).toBe(204);
    await eventually(async () => expect(await lines()).toContainEqual(expect.objectContaining({ msg: 'account.no-longer-full' })));
    await eventually(async () => expect((await one.publish(n)).status).toBe(202));
  });
});
