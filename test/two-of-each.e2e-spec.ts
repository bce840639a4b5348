import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { APPS } from '../scripts/processes/apps.mjs';
import { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { outsideProducer } from './support/producer.js';
import { Receiver } from './support/receiver.js';
import { startSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

const CODE = "export default { name: 'Twice', run(event) { this.$emit(event) } };";

let system: System;
let receiver: Receiver;
let producer: Awaited<ReturnType<typeof outsideProducer>>;
/** One account, through either gateway; behind a load balancer, twice through that. */
let gateways: [Api, Api];

beforeAll(async () => {
  [system, receiver] = await Promise.all([startSystem(), Receiver.start()]);
  producer = await outsideProducer(system.brokers);
  await system.apps.scale(Object.fromEntries(APPS.map((app) => [app, 2])));
  const { account } = await system.account();
  const [first, second] = system.apps.apiUrls();
  gateways = [new Api(first!, account), new Api(second ?? first!, account)];
});
afterAll(async () => {
  await Promise.all([producer?.close(), system?.stop(), receiver?.close()]);
});

/** Everything that a client does, each step through the other gateway. */
async function everything(round: string): Promise<void> {
  const [a, b] = gateways;
  const path = `/${round}`;
  const source = await a.source(CODE, { name: round });
  expect((await b.get(`/sources/${source.id}`)).body.data).toEqual(source);
  const webhook = await b.webhook(`${receiver.url}${round}`);
  await a.subscribe(source.id, webhook);
  await producer.emit(source.id, [{ round, n: 1 }]);
  expect((await b.post(`/sources/${source.id}/run`, { event: { round, n: 2 } })).status).toBe(202);
  await eventually(
    () => {
      const arrived = receiver.received.filter((request) => request.path === path).map(({ body }) => body.n as number);
      // at least once: a repeat is allowed if a service was stopped
      expect([...new Set(arrived)].sort()).toEqual([1, 2]);
    },
    { withinMs: 60_000 },
  );
  for (const api of gateways)
    await eventually(async () => expect((await api.get(`/sources/${source.id}/event_summaries`)).body.page_info.total_count).toBe(2));
  expect((await a.delete(`/sources/${source.id}`)).status).toBe(204);
  expect((await b.get(`/sources/${source.id}`)).status).toBe(404);
}

needing('scale', 'receiver').describe('two of each service', () => {
  it('handle everything correctly through either gateway', () => everything('both'));

  it('handle concurrent requests to both', async () => {
    const responses = await Promise.all(
      Array.from({ length: 60 }, (_, n) => gateways[n % 2]!.post('/sources', { component_code: CODE, name: 'same' })),
    );
    expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 200));
    const slugs = responses.map(({ body }) => body.data.name_slug as string);
    expect(new Set(slugs).size).toBe(60);
  });

  it.each(['catalog', 'routing', 'event-store', 'runtime'] as const)('keep working while one %s is stopped and started', async (app) => {
    const stopped = system.apps.scale({ [app]: 1 });
    await everything(`${app}-stops`);
    await stopped;
    const started = system.apps.scale({ [app]: 2 });
    await everything(`${app}-starts`);
    await started;
    await everything(`${app}-is-back`);
  });

  it('keep working through one gateway while the other is stopped', async () => {
    await system.apps.scale({ gateway: 1 });
    for (let n = 0; n < 20; n++) expect((await gateways[0].get('/users/me/sources')).status).toBe(200);
    await system.apps.scale({ gateway: 2 });
    await everything('gateway-is-back');
  });
});
