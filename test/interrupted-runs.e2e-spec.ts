import { afterAll, expect } from '@jest/globals';
import { eventually } from './support/eventually.js';
import { Receiver } from './support/receiver.js';
import { startSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

/** More than the runtime waits for when it stops. */
const RUN_MS = 6000;

let system: System | undefined;
let receiver: Receiver | undefined;
afterAll(() => Promise.all([system?.stop(), receiver?.close()]));

needing('processes', 'control', 'receiver').it(
  'a run that takes longer than its service may take to stop is repeated by the next one',
  async () => {
    [system, receiver] = await Promise.all([startSystem({ variables: { runtime: { SLUICE_SHUTDOWN_TIMEOUT: '4s' } } }), Receiver.start()]);
    const api = await system.account();
    const source = await api.source(`export default { name: 'slow',
    async run() {
      await fetch('${receiver.url}begun', { method: 'POST' });
      await new Promise((resolve) => setTimeout(resolve, ${RUN_MS}));
      this.$emit('done');
    } }`);
    const begun = (times: number) => eventually(() => expect(receiver?.received).toHaveLength(times));
    await api.post(`/sources/${source.id}/run`, { event: {} });
    await begun(1);

    await system.apps.stop('runtime');
    await system.apps.start('runtime');
    await begun(2);
    await eventually(async () => {
      const { data } = (await api.get(`/sources/${source.id}/event_summaries`)).body;
      expect(data.map(({ event }: { event: unknown }) => event)).toEqual(['done']);
    });
    const { data } = (await api.get(`/sources/${source.id}/runs`)).body;
    expect(data).toMatchObject([{ status: 'succeeded' }]);
  },
);
