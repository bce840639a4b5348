import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { createSource, type CreateSource, getSource, type Source, type SourceReference } from '#contracts';
import { HttpAppForTests, SOURCE } from '../http-app-for-tests.js';
import { Sharing } from './request-queues.js';

const http = new HttpAppForTests();
beforeEach(() => http.reset());
afterEach(() => http.close());

describe('the requests of an account that are in progress', () => {
  let replies: (() => void)[];
  const waitsFor = async <Reply>(reply: Reply): Promise<Reply> => {
    await new Promise<void>((resolve) => replies.push(resolve));
    return reply;
  };
  const settled = () => new Promise((resolve) => setTimeout(resolve, 50));
  const get = (authorization = 'Bearer my-key') => http.send('GET', `/v1/sources/${SOURCE}`, { headers: { authorization } });
  const replyToAll = async () => {
    for (; replies.length > 0; await settled()) for (const reply of replies.splice(0)) reply();
  };

  beforeEach(async () => {
    replies = [];
    http.messages.replyTo(getSource, ({ id }: SourceReference) => waitsFor({ id } as Source) as never);
    http.messages.replyTo(createSource, ({ id }: CreateSource) => waitsFor({ id } as Source) as never);
    await http.start();
  });

  /** Another account sends a request, too. */
  const share = async () => {
    const responses = [get('Bearer neighbour-key'), get()];
    await settled();
    await replyToAll();
    await Promise.all(responses);
    http.messages.requests.length = 0;
  };

  it('are at most 64 while no other account sends requests', async () => {
    const responses = Array.from({ length: 70 }, () => get());
    await settled();
    expect(http.messages.requests).toHaveLength(64);
    await replyToAll();
    expect((await Promise.all(responses)).map(({ status }) => status)).toEqual(Array(70).fill(200));
  });

  it('are at most eight; further ones wait, and those of other accounts do not', async () => {
    await share();
    const responses = Array.from({ length: 20 }, () => get());
    await settled();
    expect(http.messages.requests).toHaveLength(8);
    const neighbour = get('Bearer neighbour-key');
    await settled();
    expect(http.messages.requests).toHaveLength(9);
    replies[0]!();
    await settled();
    expect(http.messages.requests).toHaveLength(10);
    await replyToAll();
    expect((await Promise.all([...responses, neighbour])).map(({ status }) => status)).toEqual(Array(21).fill(200));
  });

  it('do not wait for those that wait long by nature', async () => {
    await share();
    const slow = Array.from({ length: 30 }, () => http.send('POST', '/v1/sources', { body: { component_code: 'x' } }));
    await settled();
    expect(http.messages.requests).toHaveLength(16);
    const usual = get();
    await settled();
    expect(http.messages.requests).toHaveLength(17);
    await replyToAll();
    expect((await Promise.all([...slow, usual])).map(({ status }) => status)).toEqual(Array(31).fill(200));
  });

  it('include one of each connection, however many it pipelines', async () => {
    await http.app.listen(0, '127.0.0.1');
    const client = connect((http.app.getHttpServer().address() as AddressInfo).port, '127.0.0.1').resume();
    client.write(`GET /v1/sources/${SOURCE} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer my-key\r\n\r\n`.repeat(20));
    while (http.messages.requests.length === 0) await settled();
    const [other] = [get(), await settled()];
    expect(http.messages.requests).toHaveLength(2);
    await replyToAll();
    expect({ other: (await other).status, handled: http.messages.requests.length }).toEqual({ other: 200, handled: 21 });
    client.destroy();
  });

  it('are refused with 429 while a thousand wait', async () => {
    await share();
    const responses = Array.from({ length: 1009 }, () => get());
    const { status, headers } = await Promise.race(responses);
    expect(status).toBe(429);
    expect(headers).toMatchObject({ 'retry-after': '5', ratelimit: '"busy";r=0;t=5' });
    await replyToAll();
    expect((await Promise.all(responses)).filter(({ status }) => status === 200)).toHaveLength(1008);
  });

  it('do not include one whose client disconnects while it waits', async () => {
    await share();
    const responses = Array.from({ length: 8 }, () => get());
    await settled();
    await http.app.listen(0, '127.0.0.1');
    const client = connect((http.app.getHttpServer().address() as AddressInfo).port, '127.0.0.1');
    client.write(`GET /v1/sources/${SOURCE} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer my-key\r\n\r\n`);
    await once(http.app.getHttpServer(), 'request');
    client.destroy();
    await settled();
    await replyToAll();
    expect((await Promise.all([...responses])).map(({ status }) => status)).toEqual(Array(8).fill(200));
    expect(http.messages.requests).toHaveLength(8);
  });

  it('include those whose clients have disconnected, until the services have replied', async () => {
    await share();
    await http.app.listen(0, '127.0.0.1');
    const clients = Array.from({ length: 8 }, () => {
      const client = connect((http.app.getHttpServer().address() as AddressInfo).port, '127.0.0.1');
      client.write(`GET /v1/sources/${SOURCE} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer my-key\r\n\r\n`);
      return client;
    });
    while (http.messages.requests.length < 8) await settled();
    for (const client of clients) client.destroy();
    const responses = Array.from({ length: 9 }, () => get());
    await settled();
    expect(http.messages.requests).toHaveLength(8);
    for (const reply of replies.splice(0)) reply();
    await settled();
    expect(http.messages.requests).toHaveLength(16);
    await replyToAll();
    expect((await Promise.all(responses)).map(({ status }) => status)).toEqual(Array(9).fill(200));
  });

  it('include those whose responses the client does not read', async () => {
    http.messages.replyTo(getSource, ({ id }: SourceReference) => ({ id, name: 'x'.repeat(8 << 20) }) as Source);
    // however long the large responses take
    jest.spyOn(Sharing.prototype, 'isAlone', 'get').mockReturnValue(false);
    await http.app.listen(0, '127.0.0.1');
    const clients = Array.from({ length: 9 }, () => {
      const client = connect((http.app.getHttpServer().address() as AddressInfo).port, '127.0.0.1').pause();
      client.write(`GET /v1/sources/${SOURCE} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer my-key\r\n\r\n`);
      return client;
    });
    while (http.messages.requests.length < 8) await settled();
    await settled();
    expect(http.messages.requests).toHaveLength(8);
    clients[0]!.destroy();
    while (http.messages.requests.length < 9) await settled();
    for (const client of clients) client.destroy();
    jest.restoreAllMocks();
  });
});
