import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Api, http } from './support/api.js';
import { eventually } from './support/eventually.js';
import { outsideProducer } from './support/producer.js';
import { Receiver } from './support/receiver.js';
import { joinSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

/** How often each change is made and used at once. */
const ROUNDS = 50;

const CODE = (version: number): string =>
  `export default { name: 'Versioned', props: { http: '$.interface.http' }, run(e) { this.$emit({ version: ${version}, body: e.body ?? e }) } };`;

let system: System;
let receiver: Receiver;
let producer: Awaited<ReturnType<typeof outsideProducer>>;
let api: Api;

beforeAll(async () => {
  [system, receiver] = await Promise.all([joinSystem(), Receiver.start()]);
  producer = await outsideProducer(system.brokers);
  api = await system.account();
});
afterAll(async () => {
  await Promise.all([system?.stop(), receiver?.close(), producer?.close()]);
});

const endpoint = (source: any): string => source.configured_props.http.endpoint_url;
const call = async (source: any, body: string): Promise<number> => (await http('POST', endpoint(source), { body })).status;
const rounds = Array.from({ length: ROUNDS }, (_, n) => n);
const { it: delivering } = needing('receiver');

describe('the next request sees the change', () => {
  it('of a new source: its endpoint accepts requests', async () => {
    for (const n of rounds) expect(await call(await api.source(CODE(n)), 'x')).toBe(200);
  });

  it('of new code: the next run uses it', async () => {
    const source = await api.source(CODE(-1));
    for (const n of rounds) {
      expect((await api.put(`/sources/${source.id}`, { component_code: CODE(n) })).status).toBe(200);
      expect(await call(source, String(n))).toBe(200);
      // before the next change, because a run uses the code that is current when its turn comes
      await eventually(async () => {
        const { body } = await api.get(`/sources/${source.id}/event_summaries?limit=1`);
        expect(body.data[0]?.event).toEqual({ version: n, body: String(n) });
      });
    }
  });

  it('of switching off and on: the endpoint disappears and appears', async () => {
    const source = await api.source(CODE(0));
    for (const active of rounds.flatMap(() => [false, true])) {
      await api.put(`/sources/${source.id}`, { component_id: source.component_id, active });
      expect(await call(source, 'x')).toBe(active ? 200 : 404);
    }
  });

  it('of switching on: the next event reaches the source', async () => {
    const emitter = await api.source(CODE(0));
    const listener = await api.source(CODE(1));
    await api.subscribe(emitter.id, listener.id);
    for (const n of rounds) {
      await api.put(`/sources/${listener.id}`, { component_id: listener.component_id, active: false });
      await api.put(`/sources/${listener.id}`, { component_id: listener.component_id, active: true });
      await producer.emit(emitter.id, [n]);
      // before it is switched off again: an inactive listener is skipped when an event is matched
      await eventually(async () => {
        const { body } = await api.get(`/sources/${listener.id}/event_summaries?limit=1`);
        expect(body.data[0]?.event.body).toBe(n);
      });
    }
  });

  delivering('of a subscription and its deletion: exactly the events between them are delivered', async () => {
    const emitter = await api.source(CODE(0));
    const [webhook, always] = [await api.webhook(`${receiver.url}subscribed`), await api.webhook(`${receiver.url}always`)];
    await api.subscribe(emitter.id, always);
    for (const n of rounds) {
      await api.subscribe(emitter.id, webhook);
      await producer.emit(emitter.id, [{ n, wanted: true }]);
      // an event that was emitted before a subscription ends may be matched after that
      await eventually(() => expect(receiver.received.some(({ path, body }) => path === '/subscribed' && body.n === n)).toBe(true));
      const removed = await api.delete(`/subscriptions?emitter_id=${emitter.id}&listener_id=${webhook}&event_name=`);
      expect(removed.status).toBe(200);
      await producer.emit(emitter.id, [{ n, wanted: false }]);
      // it is matched before the next subscription begins
      await eventually(() => expect(receiver.received.filter(({ path }) => path === '/always')).toHaveLength(2 * (n + 1)));
    }
    const arrived = receiver.received.filter(({ path }) => path === '/subscribed').map(({ body }) => body);
    expect(arrived).toEqual(rounds.map((n) => ({ n, wanted: true })));
  });

  it('of a deletion: the source has neither an endpoint nor events any more', async () => {
    for (const n of rounds) {
      const source = await api.source(CODE(n));
      await producer.emit(source.id, [n]);
      await eventually(async () => expect((await api.get(`/sources/${source.id}/event_summaries`)).body.data).toHaveLength(1));
      expect((await api.delete(`/sources/${source.id}`)).status).toBe(204);
      expect(await call(source, 'x')).toBe(404);
      expect((await api.get(`/sources/${source.id}/event_summaries`)).status).toBe(404);
    }
  });
});
