import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { outsideProducer } from './support/producer.js';
import { startSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

const SOURCES = 20;
const RUNS = 1000;
const KILLS = 3;
/** Counts in its db; emits its trigger with the count, and a second event, so that a torn batch would be visible. */
const COUNTER = `export default { name: 'counter', dedupe: 'unique', props: { db: '$.service.db' },
  run(event) {
    const n = (this.db.get('n') ?? 0) + 1;
    this.db.set('n', n);
    this.$emit({ trigger: event.n, n }, { id: event.n });
    this.$emit(n, { id: 'second ' + event.n, name: 'second' });
  } }`;

let system: System;
let api: Api;
let producer: Awaited<ReturnType<typeof outsideProducer>>;

beforeAll(async () => {
  system = await startSystem();
  api = await system.account();
  producer = await outsideProducer(system.brokers);
});
afterAll(async () => {
  await Promise.all([system?.stop(), producer?.close()]);
});

needing('control').describe('1000 triggered runs while the runtime is killed', () => {
  it('have their effects once each, in order', async () => {
    const silent = await api.source("export default { name: 'silent', props: { http: '$.interface.http' } }");
    const component = await api.component(COUNTER);
    const counters: string[] = [];
    for (let n = 0; n < SOURCES; n++) counters.push((await api.post('/sources', { component_id: component })).body.data.id as string);
    for (const counter of counters) await api.subscribe(silent.id, counter);
    // the runs of the hooks have ended, and the accounts' processes are running
    await producer.emit(silent.id, [{ n: 0 }]);
    await eventually(async () => expect((await api.get(`/sources/${counters[0]}/event_summaries`)).body.data).toHaveLength(1));

    const triggers = RUNS / SOURCES;
    for (let n = 1; n < triggers; n++) {
      await producer.emit(silent.id, [{ n }]);
      if (n % Math.floor(triggers / (KILLS + 1)) === 0) void system.apps.kill('runtime');
      await new Promise((resolve) => setTimeout(resolve, 60));
    }

    const expected = Array.from({ length: triggers }, (_, n) => ({ trigger: n, n: n + 1 }));
    const events = async (counter: string, stream: string) => {
      const { body } = await api.get(`/sources/${counter}/event_summaries?limit=100&expand=event&event_name=${stream}`);
      return (body.data as { event: unknown }[]).map(({ event }) => event).reverse();
    };
    for (const counter of counters) {
      await eventually(async () => expect(await events(counter, '')).toEqual(expected), { withinMs: 60_000 });
      expect(await events(counter, 'second')).toEqual(expected.map(({ n }) => n));
    }
  });
});
