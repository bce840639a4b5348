import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { Webhook } from 'standardwebhooks';
import { type Api, http } from './support/api.js';
import { eventually } from './support/eventually.js';
import { outsideProducer } from './support/producer.js';
import { type Received, Receiver } from './support/receiver.js';
import { joinSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

let system: System;
let receiver: Receiver;
let api: Api;

beforeAll(async () => {
  [system, receiver] = await Promise.all([joinSystem(), Receiver.start()]);
  api = await system.account();
});
afterAll(async () => {
  await Promise.all([system?.stop(), receiver?.close()]);
});

const component = (name: string) => readFile(new URL(`../components/${name}.mjs`, import.meta.url), 'utf8');
const arrived = (predicate: (request: Received) => boolean) =>
  eventually(() => {
    const found = receiver.received.find(predicate);
    if (!found) throw new Error(`not among the ${receiver.received.length} that arrived`);
    return found;
  });

const { it: delivering } = needing('receiver');

describe('an event reaches a webhook', () => {
  delivering('from an HTTP request to the endpoint of a source: signed, and kept', async () => {
    const source = await api.source(await component('http-request'), { configured_props: { bodyOnly: true } });
    const webhook = await api.webhook(receiver.url);
    await api.subscribe(source.id, webhook);
    const response = await http('POST', source.configured_props.http.endpoint_url, {
      headers: { 'content-type': 'application/json' },
      body: '{"order":17}',
    });
    expect(response.status).toBe(200);

    const request = await arrived(({ body }) => body.order === 17);
    expect(request.text).toBe('{"order":17}');
    const { secret } = (await api.get(`/webhooks/${webhook}/secret`)).body.data;
    expect(new Webhook(secret).verify(request.text, request.headers as Record<string, string>)).toEqual({ order: 17 });

    const summaries = await eventually(async () => {
      const { body } = await api.get(`/sources/${source.id}/event_summaries`);
      expect(body.data).toHaveLength(1);
      return body.data;
    });
    expect(summaries[0]).toMatchObject({ event: { order: 17 }, metadata: { emitter_id: source.id, name: '', summary: 'POST /' } });
    expect(request.headers).toMatchObject({
      'content-type': 'application/json',
      'ce-specversion': '1.0',
      'ce-id': summaries[0].id,
      'ce-source': source.id,
      'ce-type': 'default',
    });
  });

  delivering('from a timer, by itself', async () => {
    const source = await api.source(await component('interval-timer'), { configured_props: { timer: { intervalSeconds: 1 } } });
    expect(source.configured_props.timer).toEqual({ cron: null, interval_seconds: 1 });
    await api.subscribe(source.id, await api.webhook(receiver.url));
    const request = await arrived(({ headers, body }) => headers['ce-source'] === source.id && body.count >= 2);
    expect(request.body).toMatchObject({ interval_seconds: 1 });
  });

  delivering('from a Kafka producer outside, with nothing but a key and a JSON value', async () => {
    const source = await api.source(await component('http-request'));
    await api.subscribe(source.id, await api.webhook(receiver.url));
    const producer = await outsideProducer(system.brokers);
    await producer.emit(source.id, [{ from: 'outside' }]);
    await producer.close();
    const request = await arrived(({ body }) => body.from === 'outside');
    // it is stored and delivered independently
    await eventually(async () => {
      const { body } = await api.get(`/sources/${source.id}/event_summaries`);
      expect(body.data[0]).toMatchObject({ id: request.headers['ce-id'], event: { from: 'outside' } });
    });
  });

  delivering('after its receiver failed at first', async () => {
    const failing = await Receiver.start();
    let calls = 0;
    failing.respondWith = () => (++calls === 1 ? 500 : 200);
    const source = await api.source(await component('http-request'));
    await api.subscribe(source.id, await api.webhook(failing.url));
    await http('POST', source.configured_props.http.endpoint_url, { body: 'x' });
    await eventually(() => expect(failing.received).toHaveLength(2), { withinMs: 20_000 });
    const [first, second] = failing.received;
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(second?.text).toBe(first?.text);
    await failing.close();
  });

  it('but not after its source is deleted', async () => {
    const source = await api.source(await component('http-request'));
    expect((await api.delete(`/sources/${source.id}`)).status).toBe(204);
    expect((await api.get(`/sources/${source.id}/event_summaries`)).status).toBe(404);
    await eventually(async () => expect((await http('POST', source.configured_props.http.endpoint_url, { body: 'x' })).status).toBe(404));
    expect((await api.delete(`/sources/${source.id}`)).status).toBe(404);
  });
});
