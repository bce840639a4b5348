import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Consumer, Producer } from 'kafkajs';
import type { Api } from '../support/api.js';
import { EventStream } from '../support/event-stream.js';
import { eventually } from '../support/eventually.js';
import { needing, topic } from '../support/target.js';
import { QUIET, type World } from './world.js';

/** Workflows run outside Sluice, so they only consist of the topics `workflows`, `events` and `workflow-triggers`. */
export const workflows = (world: () => World) =>
  describe('workflows', () => {
    let api: Api;
    let otherAccount: Api;
    let producer: Producer;
    let consumer: Consumer;
    const triggered: { key: string; event: unknown; headers: Record<string, string> }[] = [];
    const id = `p_${Date.now().toString(36)}`;
    const other = `${id}2`;
    const register = (workflow: string, value: object | null) =>
      producer.send({ topic: topic('workflows'), messages: [{ key: workflow, value: value && JSON.stringify(value) }] });
    const summaries = (path = 'event_summaries') => api.get(`/workflows/${id}/${path}`);

    beforeAll(async () => {
      [api, otherAccount] = [await world().system.account(), await world().system.account()];
      producer = world().kafka.producer();
      consumer = world().kafka.consumer({ groupId: `test-${id}` });
      await Promise.all([producer.connect(), consumer.connect()]);
      await consumer.subscribe({ topics: [topic('workflow-triggers')], fromBeginning: true });
      await consumer.run({
        eachMessage: async ({ message }) => {
          const headers = Object.fromEntries(Object.entries(message.headers ?? {}).map(([name, value]) => [name, String(value)]));
          triggered.push({ key: String(message.key), event: JSON.parse(String(message.value)), headers });
        },
      });
      await register(id, { id, owner_id: api.account.id, name: 'One', active: true });
      await register(other, { id: other, owner_id: api.account.id, name: 'Two', active: true });
      await eventually(async () => expect((await summaries()).status).toBe(200));
      await eventually(async () => expect((await api.get(`/workflows/${other}/event_summaries`)).status).toBe(200));
    });
    afterAll(() => Promise.all([producer?.disconnect(), consumer?.disconnect()]));
    const subscribe = (emitter: string, listener: string, name?: string) => api.subscribe(emitter, listener, name);

    it('exist once they are registered', async () => {
      expect((await summaries('event_summaries/')).body).toEqual({
        page_info: { total_count: 0, count: 0, start_cursor: null, end_cursor: null },
        data: [],
      });
    });
    needing('accounts').it('do not exist for another account', async () => {
      for (const path of ['event_summaries', '$errors/event_summaries', '%24errors/event_summaries'])
        expect((await otherAccount.get(`/workflows/${id}/${path}`)).status).toBe(404);
    });
    it('show their events live', async () => {
      const stream = await EventStream.open(api, `/workflows/${other}/sse`);
      try {
        await world().producer.emit(other, [{ live: 1 }], { ce_id: 'w-live' });
        await eventually(() => expect(stream.events.map(({ event }) => event as unknown)).toEqual([{ live: 1 }]));
      } finally {
        stream.close();
      }
    });
    it('list their events, and their errors separately', async () => {
      await world().producer.emit(id, [{ raw_event: { a: 1 } }], { ce_type: 'default', ce_id: 'w-1' });
      const error = {
        error: { code: 'Error', cellId: 'c_1', ts: '2026-01-01T00:00:00Z', stack: 's' },
        original_event: { b: 2 },
        original_context: { id: 'x', workflow_id: id },
      };
      await world().producer.emit(id, [error], { ce_type: '$errors' });
      await eventually(async () =>
        expect((await summaries()).body.data).toMatchObject([
          { event: { raw_event: { a: 1 } }, metadata: { emitter_id: id, emit_id: 'w-1', name: '' } },
        ]),
      );
      for (const path of ['$errors/event_summaries', '%24errors/event_summaries', '%24errors/event_summaries/?limit=5'])
        await eventually(async () =>
          expect((await summaries(path)).body.data).toMatchObject([{ event: error, metadata: { name: '$errors' } }]),
        );
    });
    it('workflows that are listeners receive the event with its ce_ headers', async () => {
      const source = await api.source(QUIET);
      await subscribe(source.id, id);
      await world().producer.emit(source.id, [{ n: 1 }], { ce_id: `trigger-${id}`, ce_type: 'default', ce_summary: 'S' });
      const trigger = await eventually(() => {
        const found = triggered.find(({ headers }) => headers.ce_id === `trigger-${id}`);
        if (!found) throw new Error('not triggered yet');
        return found;
      });
      expect(trigger).toMatchObject({
        key: id,
        event: { n: 1 },
        headers: { ce_source: source.id, ce_type: 'default', ce_specversion: '1.0' },
      });
    });
    it('forward their errors to another workflow', async () => {
      await subscribe(id, other, '$errors');
      await world().producer.emit(id, [{ error: { code: 'E' } }], { ce_type: '$errors', ce_id: 'error-2' });
      await eventually(() => expect(triggered).toContainEqual(expect.objectContaining({ key: other, event: { error: { code: 'E' } } })));
    });
    it('can read large triggers with a client that does not support zstd', async () => {
      const source = await api.source(QUIET);
      await subscribe(source.id, id);
      await world().producer.emit(source.id, [{ long: 'x'.repeat(20_000) }]);
      await eventually(() => expect(triggered.map(({ event }) => (event as { long?: string }).long?.length)).toContain(20_000));
    });
    needing('receiver').it('match the glob p_*, but not dc_*', async () => {
      const { receiver, producer: emitters } = world();
      const [all, sources] = [await api.webhook(`${receiver.url}all-workflows`), await api.webhook(`${receiver.url}all-sources`)];
      await subscribe('p_*', all);
      await subscribe('dc_*', sources);
      const source = await api.source(QUIET);
      await emitters.emit(id, [{ from: 'workflow' }]);
      await emitters.emit(source.id, [{ from: 'source' }]);
      const at = (path: string) => receiver.received.filter((request) => request.path === `/${path}`).map(({ body }) => body.from);
      await eventually(() => expect([at('all-workflows'), at('all-sources')]).toEqual([['workflow'], ['source']]));
    });
    it('workflows that are removed no longer exist, nor do their subscriptions', async () => {
      await register(other, null);
      await eventually(async () => expect((await api.get(`/workflows/${other}/event_summaries`)).status).toBe(404));
      await eventually(async () => expect((await api.get('/users/me/subscriptions')).text).not.toContain(other));
      expect((await api.post(`/subscriptions?emitter_id=${id}&listener_id=${other}`)).status).toBe(404);
    });
  });
