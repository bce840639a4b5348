import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { Api, http } from './support/api.js';
import { eventually } from './support/eventually.js';
import { outsideProducer } from './support/producer.js';
import { type Received, Receiver } from './support/receiver.js';
import { joinSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

/** How often each change is made and used at once; fewer where a round takes long. */
const ROUNDS = 20;
const SLOW_ROUNDS = 10;

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
/** The status of a request to the endpoint of a source. On a busy machine, an account that sends much has to repeat some requests. */
async function call(source: any, body: string): Promise<number> {
  const { status } = await http('POST', endpoint(source), { body });
  if (status !== 429) return status;
  await sleep(1000);
  return call(source, body);
}
const rounds = Array.from({ length: ROUNDS }, (_, n) => n);
const slowRounds = rounds.slice(0, SLOW_ROUNDS);
const received = (path: string): Received[] => receiver.received.filter((request) => request.path === path);
/** Resolves when the last event of a source is this one. */
const lastEventIs = (id: string, expected: unknown): Promise<void> =>
  eventually(async () => {
    const { body } = await api.get(`/sources/${id}/event_summaries?limit=1`);
    expect(body.data[0]?.event).toEqual(expected);
  });
/** The arguments of the runs of a source, oldest first. */
const bodies = async (id: string): Promise<unknown[]> =>
  (await api.get(`/sources/${id}/event_summaries?limit=100`)).body.data.map(({ event }: any) => event.body).reverse();
const { it: delivering } = needing('receiver');

describe('a change is visible at once', () => {
  it("a new source's endpoint accepts requests", async () => {
    for (const n of slowRounds) expect(await call(await api.source(CODE(n)), 'x')).toBe(200);
  });

  it('endpoints of many new sources accept requests at the same time', async () => {
    const { component_id } = await api.source(CODE(0));
    const created = await Promise.all(Array.from({ length: 100 }, () => api.post('/sources', { component_id })));
    const statuses = await Promise.all(created.map(({ body }) => call(body.data, 'x')));
    expect(statuses).toEqual(Array(100).fill(200));
  });

  it('the first request to an endpoint, and the first requested run, see what the hook has stored', async () => {
    const code = `export default {
      name: 'Hooked', props: { http: { type: '$.interface.http', customResponse: true }, db: '$.service.db' },
      hooks: { activate() { this.db.set('ready', true); } },
      run(e) {
        const ready = this.db.get('ready') ?? false;
        if (e.method) this.http.respond({ status: 200, body: { ready } });
        else this.$emit(ready);
      },
    };`;
    // while many runs of an account wait, its hooks do, too
    const idle = await system.account();
    const { component_id } = await idle.source(code);
    for (const _ of slowRounds) {
      const source = (await idle.post('/sources', { component_id })).body.data;
      expect((await http('POST', endpoint(source), { body: 'x' })).body).toEqual({ ready: true });
      const other = (await idle.post('/sources', { component_id })).body.data;
      expect((await idle.post(`/sources/${other.id}/run`, { event: {} })).status).toBe(202);
      await eventually(async () =>
        expect((await idle.get(`/sources/${other.id}/event_summaries`)).body.data.map(({ event }: any) => event)).toEqual([true]),
      );
    }
  });

  it('all hooks of a source run, also if it is changed right after its creation', async () => {
    const hooks = ['deploy', 'activate', 'deactivate'].map((hook) => `${hook}() { this.$emit('${hook}'); }`);
    const { component_id } = await api.source(`export default { name: 'Changed', hooks: { ${hooks.join(', ')} }, run() {} };`);
    const expected = ['deploy', 'activate', 'deactivate', 'activate'];
    for (const _ of slowRounds) {
      const { id } = (await api.post('/sources', { component_id })).body.data;
      for (const active of [false, true]) expect((await api.patch(`/sources/${id}`, { active })).status).toBe(200);
      await eventually(async () =>
        expect((await api.get(`/sources/${id}/event_summaries`)).body.data.map(({ event }: any) => event).reverse()).toEqual(expected),
      );
    }
  });

  it('a new source has the subscriptions that auto-subscriptions make', async () => {
    const webhook = await api.webhook('https://example.com/');
    const path = `/auto_subscriptions?event_name=default&listener_id=${webhook}`;
    expect((await api.post(path)).status).toBe(200);
    const { component_id } = await api.source(CODE(0));
    const subscribed = async () => (await api.get('/users/me/subscriptions')).body.data.map(({ emitter_id }: any) => emitter_id);
    for (const _ of rounds) {
      const { id } = (await api.post('/sources', { component_id })).body.data;
      expect(await subscribed()).toContain(id);
    }
    expect((await api.delete(path)).status).toBe(200);
  });

  it('the next run uses new code', async () => {
    const source = await api.source(CODE(-1));
    for (const n of slowRounds) {
      expect((await api.put(`/sources/${source.id}`, { component_code: CODE(n) })).status).toBe(200);
      expect(await call(source, String(n))).toBe(200);
      // before the next change, because a run uses the code that is current when its turn comes
      await eventually(async () => {
        const { body } = await api.get(`/sources/${source.id}/event_summaries?limit=1`);
        expect(body.data[0]?.event).toEqual({ version: n, body: String(n) });
      });
    }
  });

  it('an endpoint disappears while its source is switched off', async () => {
    const source = await api.source(CODE(0));
    for (const active of rounds.flatMap(() => [false, true])) {
      await api.put(`/sources/${source.id}`, { component_id: source.component_id, active });
      expect(await call(source, 'x')).toBe(active ? 200 : 404);
    }
  });

  it('the next event reaches a source that was switched on', async () => {
    const emitter = await api.source(CODE(0));
    const listener = await api.source(CODE(1));
    await api.subscribe(emitter.id, listener.id);
    for (const n of slowRounds) {
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

  delivering('exactly the events between a subscription and its deletion are delivered', async () => {
    const emitter = await api.source(CODE(0));
    const [webhook, always] = [await api.webhook(`${receiver.url}subscribed`), await api.webhook(`${receiver.url}always`)];
    const parts = [1, 2, 3];
    await api.subscribe(emitter.id, always);
    for (const n of slowRounds) {
      await api.subscribe(emitter.id, webhook);
      // some of them are matched when the subscription has ended
      for (const part of parts) await producer.emit(emitter.id, [{ n, part, wanted: true }]);
      const removed = await api.delete(`/subscriptions?emitter_id=${emitter.id}&listener_id=${webhook}&event_name=`);
      expect(removed.status).toBe(200);
      await producer.emit(emitter.id, [{ n, wanted: false }]);
      // it is matched before the next subscription begins
      await eventually(() => expect(received('/always')).toHaveLength((parts.length + 1) * (n + 1)));
    }
    const expected = slowRounds.flatMap((n) => parts.map((part) => ({ n, part, wanted: true })));
    await eventually(() => expect(received('/subscribed').map(({ body }) => body)).toEqual(expected));
  });

  it('a deleted source has neither an endpoint nor events', async () => {
    for (const n of slowRounds) {
      const source = await api.source(CODE(n));
      await producer.emit(source.id, [n]);
      await eventually(async () => expect((await api.get(`/sources/${source.id}/event_summaries`)).body.data).toHaveLength(1));
      expect((await api.delete(`/sources/${source.id}`)).status).toBe(204);
      expect(await call(source, 'x')).toBe(404);
      expect((await api.get(`/sources/${source.id}/event_summaries`)).status).toBe(404);
    }
  });

  it('the next run uses changed props', async () => {
    const code = "export default { name: 'Configured', props: { word: 'string' }, run(e) { this.$emit([this.word, e]); } };";
    const source = await api.source(code, { configured_props: { word: 'first' } });
    for (const n of rounds) {
      expect((await api.patch(`/sources/${source.id}`, { configured_props: { word: `word ${n}` } })).status).toBe(200);
      expect((await api.post(`/sources/${source.id}/run`, { event: n })).status).toBe(202);
      await lastEventIs(source.id, [`word ${n}`, n]);
    }
  });

  it('the next event does not reach a source that was switched off', async () => {
    const emitter = await api.source(CODE(0));
    const [listener, control] = [await api.source(CODE(1)), await api.source(CODE(2))];
    for (const { id } of [listener, control]) await api.subscribe(emitter.id, id);
    const active = (value: boolean) => api.patch(`/sources/${listener.id}`, { active: value });
    for (const n of slowRounds) {
      expect((await active(false)).status).toBe(200);
      await producer.emit(emitter.id, [{ n, wanted: false }]);
      // it was matched for the other listener
      await lastEventIs(control.id, { version: 2, body: { n, wanted: false } });
      expect((await active(true)).status).toBe(200);
      await producer.emit(emitter.id, [{ n, wanted: true }]);
      await lastEventIs(listener.id, { version: 1, body: { n, wanted: true } });
    }
    expect(await bodies(listener.id)).toEqual(slowRounds.map((n) => ({ n, wanted: true })));
  });

  it('an auto-subscription covers exactly the sources that are created until its deletion', async () => {
    const [listener, control, { component_id }] = [await api.source(CODE(1)), await api.source(CODE(2)), await api.source(CODE(0))];
    const path = `/auto_subscriptions?event_name=default&listener_id=${listener.id}`;
    const create = async (): Promise<string> => (await api.post('/sources', { component_id })).body.data.id;
    for (const n of slowRounds) {
      expect((await api.post(path)).status).toBe(200);
      const covered = await create();
      expect((await api.delete(path)).status).toBe(200);
      const later = await create();
      await api.subscribe(later, control.id);
      await producer.emit(later, [{ n, wanted: false }]);
      await lastEventIs(control.id, { version: 2, body: { n, wanted: false } });
      await producer.emit(covered, [{ n, wanted: true }]);
      await lastEventIs(listener.id, { version: 1, body: { n, wanted: true } });
    }
    expect(await bodies(listener.id)).toEqual(slowRounds.map((n) => ({ n, wanted: true })));
  });

  it('the next run uses changed credentials of a connection', async () => {
    const code = `
      const demo = { type: 'app', app: 'demo' };
      export default { name: 'Connected', props: { demo }, run(e) { this.$emit([this.demo.$auth.key, e]); } };`;
    const { id } = (await api.post('/connections', { app: 'demo', credentials: { key: 'first' } })).body.data;
    const source = await api.source(code, { configured_props: { demo: { authProvisionId: id } } });
    for (const n of slowRounds) {
      expect((await api.patch(`/connections/${id}`, { credentials: { key: `key ${n}` } })).status).toBe(200);
      expect((await api.post(`/sources/${source.id}/run`, { event: n })).status).toBe(202);
      await lastEventIs(source.id, [`key ${n}`, n]);
    }
  });

  it('the next request with a revoked API key is refused', async () => {
    for (const n of rounds) {
      const { id, key } = (await api.post('/keys', { name: `key ${n}` })).body.data;
      const other = new Api(api.baseUrl, { ...api.account, api_key: key });
      expect((await other.get('/users/me')).status).toBe(200);
      expect((await api.delete(`/keys/${id}`)).status).toBe(204);
      expect((await other.get('/users/me')).status).toBe(401);
    }
  });
});

needing('receiver').describe('a change of a webhook is visible at once', () => {
  it('the next delivery goes to a changed URL', async () => {
    const emitter = await api.source(CODE(0));
    const webhook = await api.webhook(`${receiver.url}moving`);
    await api.subscribe(emitter.id, webhook);
    for (const n of rounds) {
      expect((await api.put(`/webhooks/${webhook}`, { url: `${receiver.url}moved-${n}` })).status).toBe(200);
      await producer.emit(emitter.id, [n]);
      await eventually(() => expect(received(`/moved-${n}`).map(({ body }) => body)).toEqual([n]));
    }
    expect(received('/moving')).toEqual([]);
  });

  it('exactly the events while a webhook is switched on are delivered', async () => {
    const emitter = await api.source(CODE(0));
    const [webhook, control] = [await api.webhook(`${receiver.url}switched`), await api.webhook(`${receiver.url}control`)];
    for (const id of [webhook, control]) await api.subscribe(emitter.id, id);
    for (const n of slowRounds) {
      expect((await api.put(`/webhooks/${webhook}`, { active: false })).status).toBe(200);
      await producer.emit(emitter.id, [{ n, wanted: false }]);
      await eventually(() => expect(received('/control')).toHaveLength(2 * n + 1));
      expect((await api.put(`/webhooks/${webhook}`, { active: true })).status).toBe(200);
      await producer.emit(emitter.id, [{ n, wanted: true }]);
      await eventually(() => {
        expect(received('/control')).toHaveLength(2 * n + 2);
        expect(received('/switched').at(-1)?.body).toEqual({ n, wanted: true });
      });
    }
    expect(received('/switched').map(({ body }) => body)).toEqual(slowRounds.map((n) => ({ n, wanted: true })));
  });

  it('a deleted webhook receives nothing more', async () => {
    const emitter = await api.source(CODE(0));
    await api.subscribe(emitter.id, await api.webhook(`${receiver.url}remaining`));
    for (const n of slowRounds) {
      const webhook = await api.webhook(`${receiver.url}deleted`);
      await api.subscribe(emitter.id, webhook);
      expect((await api.delete(`/webhooks/${webhook}`)).status).toBe(204);
      await producer.emit(emitter.id, [n]);
      await eventually(() => expect(received('/remaining')).toHaveLength(n + 1));
    }
    expect(received('/deleted')).toEqual([]);
  });

  it('the next delivery is also signed with a rotated secret', async () => {
    const emitter = await api.source(CODE(0));
    const webhook = await api.webhook(`${receiver.url}signed`);
    await api.subscribe(emitter.id, webhook);
    for (const n of rounds) {
      const { status, body } = await api.post(`/webhooks/${webhook}/secret/rotate`);
      expect(status).toBe(200);
      await producer.emit(emitter.id, [n]);
      const { headers, text } = await eventually(() => {
        const request = received('/signed')[n];
        expect(request?.body).toBe(n);
        return request as Received;
      });
      expect(() => new Webhook(body.data.secret as string).verify(text, headers as Record<string, string>)).not.toThrow();
    }
  });
});
