import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import { closeUnreadConnections } from '#http-server';
import { AccountStreams } from './account-streams.js';
import { SseConnection } from './sse-connection.js';

const MIB = 1024 * 1024;
const frameOf = (bytes: number): Buffer => Buffer.alloc(bytes, 'x');

/** A connection that counts what is written to it; it sends nothing until `read`. */
class Response {
  readonly written: Buffer[] = [];
  readonly writableLength = 0;
  destroyed = false;
  ended = false;
  private readonly sent: (() => void)[] = [];
  private onClose: () => void = () => {};

  once(_: string, listener: () => void): void {
    this.onClose = listener;
  }
  on(): void {}
  write(frame: Buffer, sent: () => void): void {
    this.written.push(frame);
    this.sent.push(sent);
  }
  /** The client reads as many frames. */
  read(frames = this.sent.length): void {
    for (const sent of this.sent.splice(0, frames)) sent();
  }
  end(): void {
    this.ended = true;
  }
  destroy(): void {
    this.destroyed = true;
    this.onClose();
  }
}

describe('the live streams of an account', () => {
  let account: AccountStreams;
  const open = (of = account) => {
    const response = new Response();
    return { response, connection: new SseConnection({ raw: response } as unknown as FastifyReply, of) };
  };
  const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

  beforeEach(() => {
    // ten frames of a MiB, with their objects
    account = new AccountStreams(10.5 * MIB);
  });

  describe('hold a limited amount of memory', () => {
    it('the one that has sent nothing for the longest time is cut off first', () => {
      const [slow, reading, late] = [open(), open(), open()];
      for (const { connection } of [slow, reading, late]) for (let n = 0; n < 3; n++) connection.hold(frameOf(MIB));
      const frame = frameOf(MIB);
      reading.connection.hold(frame);
      // it sends
      reading.connection.release(frame);
      late.connection.hold(frameOf(MIB));
      expect([slow, reading, late].map(({ connection }) => connection.wasCutOff)).toEqual([false, false, false]);
      late.connection.hold(frameOf(MIB));
      expect([slow, reading, late].map(({ connection }) => connection.wasCutOff)).toEqual([true, false, false]);
    });

    it('also if each of very many holds one frame only', () => {
      const streams = Array.from({ length: 100 }, () => open());
      for (const { connection } of streams) connection.write(frameOf(MIB));
      expect(streams.map(({ connection }) => connection.wasCutOff)).toEqual([...Array(90).fill(true), ...Array(10).fill(false)]);
    });

    it('a frame for many streams counts once', () => {
      const streams = Array.from({ length: 100 }, () => open());
      const frames = Array.from({ length: 8 }, () => frameOf(MIB));
      for (const frame of frames) for (const { connection } of streams) connection.write(frame);
      expect(streams.some(({ connection }) => connection.wasCutOff)).toBe(false);
    });

    it('small frames count with the objects that each stream needs for them', () => {
      const streams = Array.from({ length: 100 }, () => open());
      const send = (frames: number) => {
        for (let n = 0; n < frames; n++) {
          const frame = frameOf(200);
          for (const { connection } of streams) connection.hold(frame);
        }
        return streams.filter(({ connection }) => connection.wasCutOff).length;
      };
      expect(send(1000)).toBe(0);
      expect(send(1000)).toBeGreaterThan(10);
    });

    it('frames that are written but not sent need more', async () => {
      const streams = Array.from({ length: 100 }, () => open());
      for (let n = 0; n < 500; n++) {
        const frame = frameOf(200);
        for (const { connection } of streams) connection.write(frame);
      }
      const cutOff = () => streams.filter(({ connection }) => connection.wasCutOff).length;
      expect(cutOff()).toBe(0);
      while (streams.some(({ connection, response }) => !connection.wasCutOff && response.written.length < 500)) await nextTurn();
      expect(cutOff()).toBeGreaterThan(30);
    });

    it.each([
      ['large', MIB, 10.5 * MIB],
      ['small', 100, 8 * 1024],
    ])('from which %s frames are released when they were sent, or will never be', async (_, bytes, most) => {
      account = new AccountStreams(most);
      for (let n = 0; n < 100; n++) {
        const [reads, leaves, isCutOff, ends] = [open(), open(), open(), open()];
        for (const { connection } of [reads, leaves, isCutOff, ends]) {
          const frame = frameOf(bytes);
          connection.hold(frame);
          connection.write(frame);
          connection.release(frame);
        }
        for (let turn = 0; turn < 8; turn++) await nextTurn();
        reads.response.read();
        leaves.response.destroy();
        isCutOff.connection.cutOff();
        ends.connection.end();
        ends.response.read();
        expect([reads, leaves, ends].some(({ connection }) => connection.wasCutOff)).toBe(false);
      }
    });
  });

  it('share a number of emits that they remember', async () => {
    const streams = Array.from({ length: 250 }, () => open());
    expect(streams[0]!.connection.mayRemember).toBe(1000);
    streams.push(...Array.from({ length: 250 }, () => open()));
    expect(streams[0]!.connection.mayRemember).toBe(500);
    for (const { response } of streams.slice(1)) response.destroy();
    await nextTurn();
    expect(streams[0]!.connection.mayRemember).toBe(1000);
  });

  describe('take turns', () => {
    it('so that an event for thousands of them does not occupy the process', async () => {
      const streams = Array.from({ length: 50 }, () => open());
      const frame = frameOf(MIB);
      for (const { connection } of streams) connection.write(frame);
      const written = () => streams.filter(({ response }) => response.written.length > 0).length;
      expect(written()).toBe(1);
      const other = open(new AccountStreams());
      other.connection.write(frame);
      expect(other.response.written).toHaveLength(1);
      await nextTurn();
      expect(written()).toBe(2);
      for (let turn = 0; turn < 50; turn++) await nextTurn();
      expect(written()).toBe(50);
    });

    it('one after another, and each gets its frames in order', async () => {
      const [one, two] = [open(), open()];
      const frames = Array.from({ length: 5 }, () => frameOf(MIB));
      for (const frame of frames) for (const { connection } of [one, two]) connection.write(frame);
      const lengths: number[][] = [];
      for (let turn = 0; turn < 9; turn++) {
        await nextTurn();
        lengths.push([one.response.written.length, two.response.written.length]);
      }
      expect(lengths.slice(0, 4)).toEqual([
        [1, 1],
        [2, 1],
        [2, 2],
        [3, 2],
      ]);
      for (const { response } of [one, two]) expect(response.written).toEqual(frames);
    });

    it('and frames that wait are pending, and are sent before the stream ends', () => {
      const { response, connection } = open();
      for (let n = 0; n < 3; n++) connection.write(frameOf(MIB));
      expect({ written: response.written.length, pending: connection.pending }).toEqual({ written: 1, pending: 2 * MIB });
      connection.end();
      expect({ written: response.written.length, ended: response.ended }).toEqual({ written: 3, ended: true });
    });

    it('and are drained when the last frame was sent', async () => {
      const { response, connection } = open();
      for (let n = 0; n < 3; n++) connection.write(frameOf(MIB));
      let isDrained = false;
      const drained = connection.drained().then(() => (isDrained = true));
      for (let turn = 0; turn < 5; turn++) await nextTurn();
      response.read(2);
      await nextTurn();
      expect(isDrained).toBe(false);
      response.read();
      await drained;
    });
  });
});

describe('the response of a live stream', () => {
  let server: Server;
  let clients: Socket[];
  beforeEach(async () => {
    clients = [];
    server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  afterEach(() => {
    for (const client of clients) client.destroy();
    server.close();
  });

  const stream = async (account: AccountStreams, { reads }: { reads: boolean }): Promise<SseConnection> => {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
    clients.push(client);
    if (reads) client.resume();
    else client.pause();
    client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    const [, response] = (await once(server, 'request')) as [unknown, ServerResponse];
    const connection = new SseConnection({ raw: response, hijack: () => {}, getHeaders: () => ({}) } as unknown as FastifyReply, account);
    connection.begin();
    return connection;
  };

  it('is cut off if its client does not read, not if it reads', async () => {
    const account = new AccountStreams(8 * MIB);
    const reading = await stream(account, { reads: true });
    const unread = [await stream(account, { reads: false }), await stream(account, { reads: false })];
    // the kernel has buffers, too
    for (let n = 0; n < 200 && !unread.every(({ wasCutOff }) => wasCutOff); n++) {
      for (const connection of [reading, ...unread]) connection.write(frameOf(MIB));
      await reading.drained();
    }
    await Promise.all(unread.map(({ closed }) => closed));
    expect({ unread: unread.map(({ wasCutOff }) => wasCutOff), reading: reading.isClosed }).toEqual({
      unread: [true, true],
      reading: false,
    });
  });

  it('discards what its client has not read when it is cut off', async () => {
    const unread = await stream(new AccountStreams(64 * MIB), { reads: false });
    unread.write(frameOf(16 * MIB));
    const failed = once(clients[0]!, 'error');
    unread.cutOff();
    await unread.closed;
    clients[0]!.resume();
    expect(await failed).toMatchObject([{ code: 'ECONNRESET' }]);
  });

  it('is cut off if its client receives nothing for a while of what waits, not if it disconnects', async () => {
    closeUnreadConnections(server, 200);
    const account = new AccountStreams(64 * MIB);
    const [unread, left] = [await stream(account, { reads: false }), await stream(account, { reads: false })];
    for (const connection of [unread, left]) connection.write(frameOf(16 * MIB));
    clients[1]!.destroy();
    await Promise.all([unread.closed, left.closed]);
    expect([unread.wasCutOff, left.wasCutOff]).toEqual([true, false]);
  });
});
