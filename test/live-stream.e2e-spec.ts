import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Api } from './support/api.js';
import { EventStream } from './support/event-stream.js';
import { eventually } from './support/eventually.js';
import { outsideProducer } from './support/producer.js';
import { startSystem, type System } from './support/system.js';
import { can, needing } from './support/target.js';

const CODE = "export default { name: 'silent', props: { http: '$.interface.http' } }";
const HEARTBEAT_MS = 300;
const MAX_STREAMS = 20;
const RECONNECTS = 100;
const EVERY_MS = 20;

let system: System;
let api: Api;
let producer: Awaited<ReturnType<typeof outsideProducer>>;
let component: string;
let streams: EventStream[] = [];

beforeAll(async () => {
  const variables = {
    SLUICE_SSE_HEARTBEAT_MS: String(HEARTBEAT_MS),
    SLUICE_SSE_LINGER_MS: '200',
    SLUICE_SSE_STREAMS_PER_ACCOUNT: String(MAX_STREAMS),
  };
  system = await startSystem({ variables: can('variables') ? { gateway: variables } : {} });
  [api, producer] = await Promise.all([system.account(), outsideProducer(system.brokers)]);
  component = await api.component(CODE);
});
afterEach(() => {
  for (const stream of streams) stream.close();
  streams = [];
});
afterAll(async () => {
  await producer?.close();
  await system?.stop();
});

const source = async (): Promise<string> => (await api.post('/sources', { component_id: component })).body.data.id as string;
const open = async (path: string, options?: Parameters<typeof EventStream.open>[2]): Promise<EventStream> => {
  const stream = await EventStream.open(api, path, options);
  streams.push(stream);
  return stream;
};
const shown = (stream: EventStream, count: number) =>
  eventually(() => {
    expect(stream.events).toHaveLength(count);
    return stream.events;
  });
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe('a live stream', () => {
  it('shows events as they are emitted, in the format of the summaries', async () => {
    const id = await source();
    const [stream, whole] = [await open(`/sources/${id}/sse`), await open(`/sources/${id}/sse/?expand=event`)];
    expect(stream.headers).toMatchObject({
      'content-type': expect.stringMatching(/^text\/event-stream/),
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-request-id': expect.any(String),
    });
    await producer.emit(id, [{ n: 1 }, { n: 2, long: 'x'.repeat(2000) }], { ce_summary: 'said "so"', ce_itemid: '7', ce_itemts: '8' });
    for (const [one, query] of [
      [stream, ''],
      [whole, '?expand=event'],
    ] as const) {
      await shown(one, 2);
      const page = await eventually(async () => {
        const { body } = await api.get(`/sources/${id}/event_summaries${query}`);
        expect(body.data).toHaveLength(2);
        return body.data as { id: string }[];
      });
      expect(one.events.map(({ text }) => JSON.parse(text) as unknown)).toEqual(page.toReversed());
      expect(one.events.map((event) => event.id)).toEqual(page.map((event) => event.id).toReversed());
    }
    expect(stream.events[1]?.event).toEqual({ n: 2, $truncated: true });
    expect(whole.events[1]?.event.long).toHaveLength(2000);
  });

  it('shows only the requested stream of the requested emitter', async () => {
    const [id, other] = [await source(), await source()];
    const orders = await open(`/sources/${id}/sse?event_name=orders`);
    const errors = await open(`/sources/${id}/sse?event_name=%24errors`);
    const byDefault = await open(`/sources/${id}/sse?event_name=default`);
    await producer.emit(other, ['another emitter'], { ce_type: 'orders' });
    await producer.emit(id, ['an order'], { ce_type: 'orders' });
    await producer.emit(id, ['an error'], { ce_type: '$errors' });
    await producer.emit(id, ['an event']);
    const events = [await shown(orders, 1), await shown(errors, 1), await shown(byDefault, 1)];
    expect(events.map(([first]) => first?.event)).toEqual(['an order', 'an error', 'an event']);
  });

  it('begins after the event in the query or in the header', async () => {
    const id = await source();
    const first = await open(`/sources/${id}/sse`);
    await producer.emit(id, [0, 1, 2, 3]);
    const ids = (await shown(first, 4)).map((event) => event.id);
    const byQuery = await open(`/sources/${id}/sse?after=${ids[0]}`);
    const byHeader = await open(`/sources/${id}/sse?after=${ids[0]}`, { headers: { 'last-event-id': ids[2] ?? '' } });
    expect((await shown(byQuery, 3)).map(({ event }) => event as unknown)).toEqual([1, 2, 3]);
    expect((await shown(byHeader, 1)).map(({ event }) => event as unknown)).toEqual([3]);
    await producer.emit(id, [4]);
    expect((await shown(byQuery, 4)).at(-1)?.event).toBe(4);
    expect((await shown(byHeader, 2)).at(-1)?.event).toBe(4);
  });

  needing('variables').it('contains comments between events', async () => {
    const stream = await open(`/sources/${await source()}/sse`);
    await eventually(() => expect(stream.comments.length).toBeGreaterThanOrEqual(2));
  });

  it(`loses nothing and repeats nothing for a client that reconnects ${RECONNECTS} times at random moments, under load`, async () => {
    const [id, ...others] = await Promise.all([source(), source(), source(), source()]);
    const path = `/sources/${id}/sse`;
    let stream = await open(path);
    const got: { id: string; n: number }[] = [];
    let [emitted, done] = [0, false];
    const emitting = (async () => {
      while (!done) {
        // only the last 100 are stored: a slow machine must not make the client miss more than that
        if (emitted - got.length - stream.events.length > 60) {
          await pause(EVERY_MS);
          continue;
        }
        const n = emitted++;
        // a producer that retries: the same emit a few events later
        const emits = n % 10 === 9 ? [n, n - 5] : [n];
        const beside = others.map((other) =>
          producer.emit(
            other,
            Array.from({ length: 5 }, () => ({ beside: 'x'.repeat(200) })),
          ),
        );
        for (const each of emits) await producer.emit(id, [{ n: each }], { ce_id: `emit-${each}` });
        await Promise.all([...beside, pause(EVERY_MS)]);
      }
    })();
    await eventually(() => expect(stream.events.length).toBeGreaterThan(0));
    for (let n = 0; n < RECONNECTS; n++) {
      // At another point of the stream each time.
      await pause((n * 37) % 100);
      stream.close();
      got.push(...stream.events.splice(0).map((streamed) => ({ id: streamed.id, n: streamed.event.n as number })));
      stream = await open(path, { headers: { 'last-event-id': got.at(-1)?.id ?? '' } });
    }
    done = true;
    await emitting;
    await eventually(() => expect(got.length + stream.events.length).toBeGreaterThanOrEqual(emitted));
    got.push(...stream.events.map((streamed) => ({ id: streamed.id, n: streamed.event.n as number })));
    expect(got.map(({ n }) => n)).toEqual(Array.from({ length: emitted }, (_, n) => n));
    expect(emitted).toBeGreaterThan(RECONNECTS);
  });

  it('is closed if its client does not read, but not for others', async () => {
    const id = await source();
    const path = `/sources/${id}/sse?expand=event`;
    const [idle, reader] = [await open(path, { reading: false }), await open(path)];
    const count = 40;
    for (let n = 0; n < count; n++) {
      await producer.emit(id, [{ n, text: 'x'.repeat(900_000) }]);
      // this reader keeps up: the unread events belong to the other one
      await shown(reader, n + 1);
    }
    idle.read();
    await idle.closed;
    expect(idle.events.length).toBeLessThan(count);
    await producer.emit(id, ['and on']);
    expect((await shown(reader, count + 1)).at(-1)?.event).toBe('and on');
  });

  needing('accounts').it('is refused for an emitter that does not exist, belongs to another account, or is malformed', async () => {
    const id = await source();
    const otherAccount = await system.account();
    const status = async (path: string, headers = {}, who = api) => (await who.send('GET', path, undefined, headers)).status;
    expect(await status(`/sources/${id}/sse`, {}, otherAccount)).toBe(404);
    expect(await status('/sources/dc_000000000000/sse')).toBe(404);
    expect(await status('/workflows/p_000000000000/sse')).toBe(404);
    expect(await status(`/sources/${id}/sse?after=x`)).toBe(400);
    expect(await status(`/sources/${id}/sse`, { 'last-event-id': 'x' })).toBe(400);
    expect(await status(`/sources/${id}/sse?event_name=%24other`)).toBe(400);
    expect(await status(`/sources/${id}/sse`, { authorization: 'Bearer nothing' })).toBe(401);
    expect((await api.post(`/sources/${id}/sse`)).status).toBe(405);
    const head = await api.send('HEAD', `/sources/${id}/sse`);
    expect([head.status, head.headers['content-type'], head.text]).toEqual([200, expect.stringMatching(/^text\/event-stream/), '']);
  });

  needing('accounts').it('ends soon after its key is revoked, while others continue', async () => {
    const id = await source();
    const { id: keyId, api_key } = await system.sluice('key', 'create', '--account', api.account.id);
    const [stream, other] = [
      await open(`/sources/${id}/sse`, { headers: { authorization: `Bearer ${api_key}` } }),
      await open(`/sources/${id}/sse`),
    ];
    await system.sluice('key', 'revoke', keyId);
    await stream.closed;
    await producer.emit(id, ['and on']);
    await shown(other, 1);
  });

  it('ends soon after its source is deleted, while others continue', async () => {
    const [id, kept] = [await source(), await source()];
    const [stream, other] = [await open(`/sources/${id}/sse`), await open(`/sources/${kept}/sse`)];
    await api.delete(`/sources/${id}`);
    await stream.closed;
    await producer.emit(kept, ['and on']);
    await shown(other, 1);
  });

  needing('variables', 'accounts').it('is refused to an account that has reached its limit', async () => {
    const crowded = await system.account();
    const { id } = await crowded.source(CODE);
    const path = `/sources/${id}/sse`;
    for (let n = 0; n < MAX_STREAMS; n++) streams.push(await EventStream.open(crowded, path));
    expect((await crowded.get(path)).status).toBe(429);
    expect((await crowded.get('/sources/dc_000000000000/sse')).status).toBe(429);
    streams.pop()?.close();
    await eventually(async () => streams.push(await EventStream.open(crowded, path)));
    await open(`/sources/${await source()}/sse`);
  });

  needing('variables', 'logs').it('reads the topic only while a client is connected', async () => {
    const count = async () => {
      const lines = await system.apps.logs('gateway');
      return ['live.reading', 'live.idle'].map((what) => lines.filter((line) => line.includes(what)).length);
    };
    const expectReading = (readers: number) =>
      eventually(async () => {
        const [begun, ended] = await count();
        expect(begun! - ended!).toBe(readers);
      });
    await expectReading(0);
    const id = await source();
    const stream = await open(`/sources/${id}/sse`);
    await expectReading(1);
    await producer.emit(id, ['an event']);
    await shown(stream, 1);
    stream.close();
    await expectReading(0);
  });

  needing('control', 'logs').it('ends when the gateway stops, and continues with the next one', async () => {
    const id = await source();
    const stream = await open(`/sources/${id}/sse`);
    await producer.emit(id, [1]);
    const [first] = await shown(stream, 1);
    await system.apps.stop('gateway');
    await stream.closed;
    await producer.emit(id, [2]);
    await system.apps.start('gateway');
    expect((await system.apps.logs('gateway')).filter((line) => line.includes('stop-timed-out'))).toEqual([]);
    const next = await open(`/sources/${id}/sse`, { headers: { 'last-event-id': first?.id ?? '' } });
    await producer.emit(id, [3]);
    expect((await shown(next, 2)).map(({ event }) => event as unknown)).toEqual([2, 3]);
  });
});
