import { describe, expect, it, jest } from '@jest/globals';
import { EventEmitter } from 'node:events';
import type { FastifyReply } from 'fastify';
import { type EmitterId, type EventPage, listEvents, type UserId } from '#contracts';
import { createLog } from '#observability';
import { FakeMessages } from '#testing';
import type { Caller } from '../accounts/account.decorator.js';
import type { LiveClient } from './live-client.js';
import { LiveStreamsService } from './live-streams.service.js';

const SOURCE: EmitterId = 'dc_000000000000000001';
const NO_PAGE: EventPage = { page_info: { total_count: 0, count: 0, start_cursor: null, end_cursor: null }, items: [] };

describe('the live streams of an account', () => {
  const callerOf = (id: UserId) => ({ account: { id }, apiKey: 'key', scope: 'read' }) as unknown as Caller;
  const newReply = () => {
    const raw = Object.assign(new EventEmitter(), { writableLength: 0, writeHead: () => {}, flushHeaders: () => {} });
    const reply: unknown = { raw, request: { method: 'GET', id: 'r' }, hijack: () => {}, getHeaders: () => ({}), elapsedTime: 0 };
    return { raw, reply: reply as FastifyReply };
  };

  /** Opens streams of a service. */
  const opener = (
    messages: FakeMessages,
    page: () => Promise<EventPage>,
    delayRequest: () => Promise<void> = async () => {},
    reached: () => Promise<void> = async () => {},
  ) => {
    const service = new LiveStreamsService(
      { page } as never,
      messages as never,
      { join: async () => new Map(), leave: () => {} } as never,
      { reached } as never,
      { maxPerAccount: 100, heartbeatMs: 60_000 } as never,
      {} as never,
      {} as never,
      { delayRequest } as never,
      createLog('test', 'silent'),
    );
    return async (owner: UserId) => {
      const { raw, reply } = newReply();
      await service.stream(callerOf(owner), SOURCE, {}, { ms: 1, seq: 0 }, reply);
      return raw;
    };
  };
  const turns = async () => {
    for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
  };

  it('read eight pages of missed events at a time, and do not delay those of other accounts', async () => {
    const replies: (() => void)[] = [];
    const messages = new FakeMessages().replyTo(
      listEvents,
      () => new Promise<EventPage>((resolve) => replies.push(() => resolve(NO_PAGE))) as never,
    );
    const open = opener(messages, async () => NO_PAGE);
    const streams = await Promise.all(Array.from({ length: 20 }, () => open('u_1')));
    await turns();
    expect(messages.requests).toHaveLength(8);
    streams.push(await open('u_2'));
    await turns();
    expect(messages.requests).toHaveLength(10);
    // a client that has disconnected does not need its two pages
    streams[19]!.emit('close');
    for (; replies.length > 0; await turns()) for (const reply of replies.splice(0)) reply();
    expect(messages.requests).toHaveLength(40);
    for (const stream of streams) stream.emit('close');
  });

  it('begin while all turns to read missed events are taken', async () => {
    const messages = new FakeMessages().replyTo(listEvents, () => new Promise<EventPage>(() => {}) as never);
    const open = opener(messages, async () => NO_PAGE);
    const streams = await Promise.all(Array.from({ length: 20 }, () => open('u_1')));
    await turns();
    streams.push(await open('u_1'));
    for (const stream of streams) stream.emit('close');
  });

  it('read what is stored while the store is behind', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate'] });
    try {
      const messages = new FakeMessages().replyTo(listEvents, () => NO_PAGE);
      const open = opener(
        messages,
        async () => NO_PAGE,
        undefined,
        () => new Promise(() => {}),
      );
      const stream = await open('u_1');
      for (let n = 0; n < 3; n++) {
        await turns();
        expect(messages.requests).toHaveLength(n);
        await jest.advanceTimersByTimeAsync(2500);
      }
      stream.emit('close');
    } finally {
      jest.useRealTimers();
    }
  });

  it('read each page of missed events at the pace of the account, and none for a client that has disconnected meanwhile', async () => {
    const delays: (() => void)[] = [];
    const messages = new FakeMessages().replyTo(listEvents, () => NO_PAGE);
    const open = opener(
      messages,
      async () => NO_PAGE,
      () => new Promise((resolve) => delays.push(resolve)),
    );
    const streams = await Promise.all([open('u_1'), open('u_1')]);
    await turns();
    expect({ delays: delays.length, requests: messages.requests.length }).toEqual({ delays: 4, requests: 0 });
    streams[1].emit('close');
    for (const end of delays) end();
    await turns();
    expect(messages.requests).toHaveLength(2);
    streams[0].emit('close');
  });

  it('report that events may be missing if the last event of the client is in the future', async () => {
    const comments: string[] = [];
    const service = new LiveStreamsService(
      ...([{ page: async () => NO_PAGE }, new FakeMessages()] as [never, never]),
      ...([{ join: async (client: LiveClient) => client.begin(new Map()), leave: () => {} }, { reached: async () => {} }] as [
        never,
        never,
      ]),
      ...([{ maxPerAccount: 1, heartbeatMs: 60_000 }, {}, {}, {}] as [never, never, never, never]),
      createLog('test', 'silent'),
    );
    for (const after of [null, { ms: Date.now() + 3_600_000, seq: 0 }]) {
      const { raw, reply } = newReply();
      Object.assign(raw, { write: (frame: Buffer) => comments.push(String(frame)) });
      await service.stream(callerOf('u_1'), SOURCE, {}, after, reply);
      raw.emit('close');
      await turns();
    }
    expect(comments).toEqual([': only the last 100 events are kept: there may have been more\n\n']);
  });

  it('do not include one whose client has disconnected before it began', async () => {
    let left = 0;
    const service = new LiveStreamsService(
      ...([{ page: async () => NO_PAGE }, new FakeMessages()] as [never, never]),
      ...([{ join: async () => new Map(), leave: () => left++ }, { reached: async () => {} }] as [never, never]),
      ...([{ maxPerAccount: 1, heartbeatMs: 60_000 }, {}, {}, {}] as [never, never, never, never]),
      createLog('test', 'silent'),
    );
    for (const closed of [true, false]) {
      const { raw, reply } = newReply();
      // as Node, which has emitted 'close' while the request was authenticated
      Object.assign(raw, { closed });
      await service.stream(callerOf('u_1'), SOURCE, {}, null, reply);
      await turns();
      expect(left).toBe(1);
      raw.emit('close');
    }
    await turns();
    expect(left).toBe(2);
  });

  it('fail after ten seconds in all if the event store does not reply, however many wait before them', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate'] });
    try {
      let asked = 0;
      const open = opener(new FakeMessages(), () => {
        asked += 1;
        return new Promise<EventPage>(() => {});
      });
      const failed: string[] = [];
      for (let n = 0; n < 20; n++) open('u_1').catch(({ code }) => failed.push(code));
      await turns();
      await jest.advanceTimersByTimeAsync(10_000);
      expect(failed).toEqual(Array(20).fill('timeout'));
      expect(asked).toBe(8);
    } finally {
      jest.useRealTimers();
    }
  });

  it('begin eight at a time', async () => {
    const begun: (() => void)[] = [];
    const messages = new FakeMessages().replyTo(listEvents, () => NO_PAGE);
    const open = opener(messages, () => new Promise((resolve) => begun.push(() => resolve(NO_PAGE))));
    const streams = Array.from({ length: 20 }, () => open('u_1'));
    await turns();
    expect(begun).toHaveLength(8);
    streams.push(open('u_2'));
    await turns();
    expect(begun).toHaveLength(9);
    for (let n = 0; n < 21; n++, await turns()) begun[n]!();
    for (const stream of await Promise.all(streams)) stream.emit('close');
  });
});
