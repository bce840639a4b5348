import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { ApiResponse, Api } from './support/api.js';
import { EventStream } from './support/event-stream.js';
import { eventually } from './support/eventually.js';
import { outsideProducer } from './support/producer.js';
import { type Received, Receiver } from './support/receiver.js';
import { startSystem, type System } from './support/system.js';
import { needing } from './support/target.js';
import { registerWorkflow } from './support/workflows.js';

let system: System;
let receiver: Receiver;
let api: Api;
let source: any;
const STRUCTURED = 'application/cloudevents+json';
const BATCH = 'application/cloudevents-batch+json';
const JSON_TYPE = 'application/json';

beforeAll(async () => {
  [system, receiver] = await Promise.all([startSystem(), Receiver.start()]);
  api = await system.account();
  source = (await api.post('/sources', { key: 'manual' })).body.data;
});
afterAll(async () => {
  await Promise.all([system?.stop(), receiver?.close()]);
});

const publish = (path: string, body: unknown, type = JSON_TYPE, headers: Record<string, string> = {}): Promise<ApiResponse> =>
  api.raw('POST', path, typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body), {
    'content-type': type,
    ...headers,
  });
const summaries = async (id: string, query = '?limit=100&expand=event') =>
  (await api.get(`/sources/${id}/event_summaries${query}`)).body.data as any[];
const emitIds = ({ body }: ApiResponse) => body.data.map(({ emit_id }: any) => emit_id);
const cloudEvent = (more: object = {}) => ({ specversion: '1.0', id: randomUUID(), source: '/shop', type: 'order', data: 1, ...more });
/** A separate source. */
const emitter = async (): Promise<string> => (await api.post('/sources', { key: 'manual' })).body.data.id;
const arrived = (predicate: (request: Received) => boolean) =>
  eventually(() => {
    const found = receiver.received.find(predicate);
    if (!found) throw new Error(`not among the ${receiver.received.length} that arrived`);
    return found;
  });

describe('an event that is published', () => {
  it('is stored byte for byte, with the emit id of the response', async () => {
    const id = await emitter();
    const response = await publish(`/sources/${id}/events`, '{"n": 1.0, "text": "é"}');
    expect(response.status).toBe(202);
    expect(emitIds(response)).toEqual([expect.stringMatching(/^[0-9A-Za-z]{27}$/)]);
    await eventually(async () => {
      const page = await api.get(`/sources/${id}/event_summaries?expand=event`);
      expect(page.text).toContain('"event":{"n": 1.0, "text": "é"}');
      expect(page.body.data[0].metadata).toEqual({ emitter_id: id, emit_id: emitIds(response)[0], name: '' });
    });
  });

  it('may be any JSON value on any stream, and come twice', async () => {
    const id = await emitter();
    for (const [value, query] of [
      [null, ''],
      [[1], '?event_name=default&id=x'],
      [[1], '?id=x'],
      ['"text"', '?event_name=orders'],
      [{ error: { message: 'm' } }, '?event_name=%24errors'],
    ] as const)
      expect((await publish(`/sources/${id}/events${query}`, value)).status).toBe(202);
    await eventually(async () => {
      expect((await summaries(id)).map(({ event }) => event)).toEqual([[1], null]);
      expect((await summaries(id, '?event_name=orders')).map(({ event }) => event)).toEqual(['text']);
      expect(await summaries(id, '?event_name=$errors')).toHaveLength(1);
    });
  });

  it('is accepted of an inactive source', async () => {
    const id = await emitter();
    await api.put(`/sources/${id}`, { component_id: source.component_id, active: false });
    expect((await publish(`/sources/${id}/events`, 1)).status).toBe(202);
    await eventually(async () => expect(await summaries(id)).toHaveLength(1));
  });

  it('may be in the name of a workflow', async () => {
    const workflow = `p_${Date.now().toString(36)}`;
    await registerWorkflow(system.brokers, workflow, api.account.id);
    await eventually(async () => expect((await publish(`/workflows/${workflow}/events?id=w`, { w: 1 })).status).toBe(202));
    await eventually(async () => {
      const { body } = await api.get(`/workflows/${workflow}/event_summaries`);
      expect(body.data.map(({ event }: any) => event)).toEqual([{ w: 1 }]);
    });
    expect((await publish(`/sources/${workflow}/events`, 1)).status).toBe(404);
  });

  it('is not published twice with one Idempotency-Key; CloudEvents headers are part of the request', async () => {
    const id = await emitter();
    const headers = { 'idempotency-key': randomUUID(), 'ce-subject': 'a' };
    const [first, second] = [
      await publish(`/sources/${id}/events`, 1, JSON_TYPE, headers),
      await publish(`/sources/${id}/events`, 1, JSON_TYPE, headers),
    ];
    expect([first.status, second.status]).toEqual([202, 202]);
    expect(emitIds(second)).toEqual(emitIds(first));
    expect((await publish(`/sources/${id}/events`, 1, JSON_TYPE, { ...headers, 'ce-subject': 'b' })).status).toBe(422);
    expect((await publish(`/sources/${id}/events?id=last`, 2)).status).toBe(202);
    await eventually(async () => expect((await summaries(id)).map(({ event }) => event)).toEqual([2, 1]));
  });
});

describe('a batch', () => {
  it('is published in its order', async () => {
    const id = await emitter();
    const response = await publish(
      `/sources/${id}/events?event_name=default`,
      Array.from({ length: 500 }, (_, n) => cloudEvent({ id: `e${n}`, data: n })),
      BATCH,
    );
    expect(response.status).toBe(202);
    expect(emitIds(response)).toEqual(Array.from({ length: 500 }, (_, n) => `e${n}`));
    await eventually(async () =>
      expect((await summaries(id)).map(({ event }) => event)).toEqual(Array.from({ length: 100 }, (_, n) => 499 - n)),
    );
  });

  it('a batch of 2 MiB is published', async () => {
    const id = await emitter();
    const large = [cloudEvent({ data: 'x'.repeat(1024 * 1024 - 2) }), cloudEvent({ data: 'y'.repeat(1024 * 1023) })];
    expect((await publish(`/sources/${id}/events?event_name=default`, large, BATCH)).status).toBe(202);
    await eventually(async () => expect((await api.get(`/sources/${id}/event_summaries`)).body.page_info.total_count).toBe(2));
  });

  it('an empty batch publishes nothing', async () => {
    const response = await publish(`/sources/${source.id}/events`, [], BATCH);
    expect([response.status, response.body]).toEqual([202, { data: [] }]);
  });

  it('a batch with bad events is refused as a whole, and names each of them', async () => {
    const id = await emitter();
    const response = await publish(`/sources/${id}/events`, [cloudEvent(), {}, cloudEvent({ type: '' })], BATCH);
    expect(response.status).toBe(400);
    expect(response.body.errors.map(({ index, field }: any) => [index, field])).toEqual([
      [1, '[1].specversion'],
      [1, '[1].id'],
      [1, '[1].source'],
      [1, '[1].type'],
      [2, '[2].type'],
    ]);
    expect((await publish(`/sources/${id}/events`, 'null')).status).toBe(202);
    await eventually(async () => expect((await summaries(id)).map(({ event }) => event)).toEqual([null]));
  });
});

describe('a request that is refused', () => {
  const NOBODY = '/sources/dc_000000000000000000/events';
  it.each<[number, string, string | Buffer, string, Record<string, string>]>([
    [413, 'more than 2 MiB', Buffer.alloc(2 * 1024 * 1024 + 1, '1'), 'text/plain', {}],
    [415, 'text', 'x', 'text/plain', {}],
    [415, 'no body of another type', '', 'text/plain', {}],
    [415, 'another JSON', '{}', 'application/vnd.shop+json', {}],
    [415, 'another type in binary mode', '{}', 'application/xml', { 'ce-id': 'x' }],
    [415, 'a compressed body', '{}', JSON_TYPE, { 'content-encoding': 'gzip' }],
    [400, 'no body', '', JSON_TYPE, {}],
    [400, 'no JSON', '{', JSON_TYPE, {}],
    [400, 'more than 1 MiB', `"${'x'.repeat(1024 * 1024)}"`, JSON_TYPE, {}],
    [400, 'no CloudEvent', '{}', STRUCTURED, {}],
    [400, '501 events', JSON.stringify(Array(501).fill(1)), BATCH, {}],
  ])('%d: %s, before 404', async (status, _, body, type, headers) => {
    expect((await publish(`/sources/${source.id}/events`, body, type, headers)).status).toBe(status);
    expect((await publish(NOBODY, body, type, headers)).status).toBe(status);
  });

  it.each(['event_name=*', 'event_name=$in', 'event_name=$x', `id=${'x'.repeat(257)}`])('400: %s', async (query) => {
    expect((await publish(`/sources/${source.id}/events?${query}`, 1)).status).toBe(400);
    expect((await publish(`${NOBODY}?${query}`, 1)).status).toBe(400);
  });

  it('404: a source that was just deleted, one that never was, and no id at all', async () => {
    const id = await emitter();
    expect((await publish(`/sources/${id}/events`, 1)).status).toBe(202);
    expect((await api.delete(`/sources/${id}`)).status).toBe(204);
    for (const path of [`/sources/${id}/events`, NOBODY, '/sources/nope/events', `/workflows/${id}/events`])
      expect((await publish(path, 1)).status).toBe(404);
  });

  needing('scale').it('404 at every gateway as soon as the deletion has its response', async () => {
    await system.apps.scale({ gateway: 2 });
    const urls = system.apps.apiUrls();
    for (let n = 0; n < 10; n++) {
      const id = await emitter();
      const statuses = () => Promise.all(urls.map(async (url) => (await send(url, `/sources/${id}/events`)).status));
      expect(await statuses()).toEqual(urls.map(() => 202));
      await api.delete(`/sources/${id}`);
      expect(await statuses()).toEqual(urls.map(() => 404));
    }
    await system.apps.scale({ gateway: 1 });
  });
  const send = (url: string, path: string): Promise<Response> =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${api.account.api_key}`, 'content-type': JSON_TYPE },
      body: '1',
    });
});

const { it: delivering } = needing('receiver');

describe('CloudEvents reach webhooks', () => {
  delivering('as they were published: structured, in binary mode, and from Kafka', async () => {
    const id = await emitter();
    await api.subscribe(id, await api.webhook(receiver.url), '*');
    const attributes = { subject: 'Größe', dataschema: 'https://example.com/s', tenant: 't 1' };
    const time = '2026-01-02T03:04:05.678+01:00';
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const event = { ...cloudEvent({ id: 'structured', type: '$shop.order', time, data: { via: 'structured' } }), ...attributes };
    expect((await publish(`/sources/${id}/events`, event, STRUCTURED, { traceparent, tracestate: 'a=b' })).status).toBe(202);
    const headers = {
      ...{ 'ce-specversion': '1.0', 'ce-id': 'binary', 'ce-source': '/shop', 'ce-type': '$shop.order', 'ce-time': time },
      ...{
        'ce-subject': 'Gr%C3%B6%C3%9Fe',
        'ce-dataschema': 'https://example.com/s',
        'ce-tenant': 't%201',
        traceparent,
        tracestate: 'a=b',
      },
    };
    expect((await publish(`/sources/${id}/events`, { via: 'binary' }, JSON_TYPE, headers)).status).toBe(202);
    const producer = await outsideProducer(system.brokers);
    await producer.emit(id, [{ via: 'kafka' }], {
      ...{ ce_specversion: '1.0', ce_id: 'kafka', ce_source: '/shop', ce_type: '$shop.order', ce_time: time },
      ...{ ce_subject: 'Größe', ce_dataschema: 'https://example.com/s', ce_tenant: 't 1', traceparent, tracestate: 'a=b' },
    });
    await producer.close();
    for (const via of ['structured', 'binary', 'kafka']) {
      const { headers } = await arrived(({ body }) => body?.via === via);
      expect(headers).toMatchObject({
        'content-type': JSON_TYPE,
        'ce-id': via,
        'ce-source': '/shop',
        'ce-type': '$shop.order',
        'ce-time': time,
        'ce-subject': 'Gr%C3%B6%C3%9Fe',
        'ce-dataschema': 'https://example.com/s',
        'ce-tenant': 't%201',
        'ce-sluiceemitter': id,
        'ce-sluicestream': 'default',
        traceparent,
        tracestate: 'a=b',
      });
      await eventually(async () => expect((await summaries(id)).map((each) => each.id)).toContain(headers['ce-sluiceevent']));
    }
  });

  delivering('a CloudEvent gets our attributes where the producer gave none', async () => {
    const id = await emitter();
    await api.subscribe(id, await api.webhook(receiver.url), 'own');
    await publish(`/sources/${id}/events?event_name=own`, { own: 1 });
    const { headers } = await arrived(({ body }) => body?.own === 1);
    const [kept] = await eventually(async () => {
      const found = await summaries(id, '?event_name=own');
      expect(found).toHaveLength(1);
      return found;
    });
    expect(headers).toMatchObject({
      'ce-id': kept.id,
      'ce-source': id,
      'ce-type': 'own',
      'ce-sluicestream': 'own',
      'ce-sluiceevent': kept.id,
    });
    await publish(`/sources/${id}/events?event_name=own&id=named`, { own: 2 });
    expect((await arrived(({ body }) => body?.own === 2)).headers['ce-id']).toBe('named');
  });

  delivering('the same when the first attempt fails', async () => {
    const failing = await Receiver.start();
    let calls = 0;
    failing.respondWith = () => (++calls === 1 ? 500 : 200);
    const id = await emitter();
    await api.subscribe(id, await api.webhook(failing.url));
    const event = cloudEvent({ id: 'retried', datacontenttype: 'application/vnd.shop+json', sluicestream: 'default', tenant: 'ü' });
    await publish(`/sources/${id}/events`, event, STRUCTURED);
    await eventually(() => expect(failing.received).toHaveLength(2), { withinMs: 20_000 });
    const ofEvent = ({ headers }: Received) =>
      Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('ce-') || name === 'content-type'));
    expect(ofEvent(failing.received[0]!)).toMatchObject({
      'ce-id': 'retried',
      'ce-type': 'order',
      'content-type': 'application/vnd.shop+json',
    });
    expect(ofEvent(failing.received[1]!)).toEqual(ofEvent(failing.received[0]!));
    await failing.close();
  });
});

describe('the streams of an emitter', () => {
  it('are listed with what they hold, and * merges the default stream and the custom ones', async () => {
    const id = await emitter();
    const emit = (value: unknown, eventName: string) => publish(`/sources/${id}/events?event_name=${eventName}`, value);
    expect((await api.get(`/sources/${id}/streams`)).body).toEqual({ data: [] });
    const live = await EventStream.open(api, `/sources/${id}/sse?event_name=*`);
    for (const [value, eventName] of [
      [1, 'default'],
      [2, 'orders'],
      [{ error: { message: 'm' } }, '$errors'],
      [3, 'default'],
      [4, 'a b'],
    ] as const)
      expect((await emit(value, encodeURIComponent(eventName))).status).toBe(202);
    const merged = await eventually(async () => {
      const { body } = await api.get(`/sources/${id}/event_summaries?event_name=*`);
      expect(body.data.map(({ event, metadata }: any) => [event, metadata.name])).toEqual([
        [4, 'a b'],
        [3, ''],
        [2, 'orders'],
        [1, ''],
      ]);
      expect(body.page_info.total_count).toBe(4);
      return body.data;
    });
    await eventually(async () => {
      const { data } = (await api.get(`/sources/${id}/streams`)).body;
      expect(data.map(({ event_name, count }: any) => [event_name, count])).toEqual([
        ['', 2],
        ['$errors', 1],
        ['a b', 1],
        ['orders', 1],
      ]);
      expect(data[0].last_event_at).toBe(Math.floor(merged[1].indexed_at_ms / 1000));
    });
    const pages: number[][] = [];
    for (let after = ''; ;) {
      const { body } = await api.get(`/sources/${id}/event_summaries?event_name=*&limit=3&after=${after}`);
      if (body.data.length === 0) break;
      pages.push(body.data.map(({ event }: any) => event));
      after = body.page_info.end_cursor;
    }
    expect(pages).toEqual([[4, 3, 2], [1]]);
    await eventually(() => expect(live.events.map(({ event }) => event)).toEqual([1, 2, 3, 4]));
    live.close();
    const resumed = await EventStream.open(api, `/sources/${id}/sse?event_name=*&after=${merged[2].id}`);
    await eventually(() => expect(resumed.events.map(({ event }) => event)).toEqual([3, 4]));
    resumed.close();

    expect((await api.delete(`/sources/${id}/events?event_name=*`)).status).toBe(202);
    await eventually(async () => {
      const { data } = (await api.get(`/sources/${id}/streams`)).body;
      expect(data.map(({ event_name }: any) => event_name)).toEqual(['$errors']);
    });
    expect((await api.get('/sources/dc_000000000000000000/streams')).status).toBe(404);
  });

  delivering('reach a webhook that an auto-subscription to * covers, but not $errors', async () => {
    const own = await Receiver.start();
    const webhook = await api.webhook(own.url);
    const made = await api.post(`/auto_subscriptions?event_name=*&listener_id=${webhook}`);
    expect(made.body.data).toMatchObject({ event_name: '*', listener_id: webhook });
    const id = await emitter();
    for (const eventName of ['%24errors', 'default', 'orders', 'last'])
      await publish(`/sources/${id}/events?event_name=${eventName}`, { eventName });
    await eventually(() => expect(own.received.map(({ body }) => body.eventName)).toEqual(['default', 'orders', 'last']));
    await api.delete(`/auto_subscriptions?event_name=*&listener_id=${webhook}`);
    await own.close();
  });
});
