import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { APPS } from '../scripts/processes/apps.mjs';
import type { Api } from './support/api.js';
import { Calls } from './support/calls.js';
import { Load } from './support/load.js';
import { Receiver } from './support/receiver.js';
import { startSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

const PER_SECOND = 300;
/**
 * The kill of routing repeats the deliveries that ended since the last commit: 50 ms, the commit's own time, and what a busy machine adds. Their share
 * depends on the moment of the kill and the length of the run; `npm run soak:delivery` measures it over many kills.
 */
const MOST_REPEATS = PER_SECOND * 0.25;

let system: System;
let receiver: Receiver;
let api: Api;
let load: Load;

beforeAll(async () => {
  [system, receiver] = await Promise.all([startSystem(), Receiver.start()]);
  api = await system.account();
  load = await Load.start(api, receiver, { brokers: system.brokers, perSecond: PER_SECOND });
});
afterAll(async () => {
  await load?.stop();
  await Promise.all([system?.stop(), receiver?.close()]);
});

needing('control', 'scale', 'receiver').describe(`${PER_SECOND} events a second`, () => {
  it.each(APPS)('all arrive while %s is restarted gracefully', async (app) => {
    await system.apps.restart(app);
    await load.settled();
  });

  it.each(APPS)('all arrive while %s is killed', async (app) => {
    await system.apps.kill(app);
    await system.apps.whenReady(app);
    await load.settled();
  });

  it('all arrive while routing is scaled from one replica to three and back', async () => {
    await system.apps.scale({ routing: 3 });
    await load.settled();
    await system.apps.scale({ routing: 1 });
    await load.settled();
  });

  it('all arrive, and no REST call fails, while two gateways are restarted gracefully', async () => {
    await system.apps.scale({ gateway: 2 });
    const source = await api.source("export default { name: 'called' }");
    const calls = new Calls(api, ['/users/me', `/sources/${source.id}`, '/users/me/webhooks'], () => system.apps.apiUrls());
    await system.apps.restart('gateway');
    const { made, failures } = await calls.stop();
    expect(failures).toEqual([]);
    expect(made).toBeGreaterThan(50);
    await load.settled();
  });

  it('have at most a quarter of a second of deliveries repeated, and the last 100 of each source are stored in order', async () => {
    await load.finish();
    const { deliveries, repeats } = load.counted();
    console.info(`restarts: ${deliveries} deliveries, ${repeats} repeats`);
    expect(repeats).toBeLessThanOrEqual(MOST_REPEATS);
    for (const [source, expected] of load.lastHundred()) {
      const { body } = await api.get(`/sources/${source}/event_summaries?limit=100`);
      expect(body.data.map(({ event }: any) => event.n)).toEqual(expected);
    }
  });
});
