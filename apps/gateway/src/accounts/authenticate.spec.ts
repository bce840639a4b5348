import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type AddressInfo, connect } from 'node:net';
import { getSource, type Source, type SourceReference } from '#contracts';
import { HttpAppForTests, SOURCE } from '../http-app-for-tests.js';

const http = new HttpAppForTests();
beforeEach(async () => {
  http.reset();
  await http.start();
});
afterEach(() => http.close());

/** The headers of a request and a part of its body; call it with the rest to get the response. */
async function begin(path: string, body: string) {
  const [part, rest] = [body.slice(0, 3), body.slice(3)];
  if (!http.app.getHttpServer().listening) await http.app.listen(0, '127.0.0.1');
  const client = connect((http.app.getHttpServer().address() as AddressInfo).port, '127.0.0.1');
  const head = `host: x\r\nauthorization: Bearer my-key\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close`;
  const before = http.lookedUp.length;
  client.write(`POST ${path} HTTP/1.1\r\n${head}\r\n\r\n${part}`);
  while (http.lookedUp.length === before) await new Promise((resolve) => setImmediate(resolve));
  return async () => {
    client.write(rest);
    const [top = '', problem = ''] = Buffer.concat(await client.toArray())
      .toString()
      .split('\r\n\r\n');
    return { status: Number(top.split(' ')[1]), top, problem };
  };
}

describe('a request that waits before its work begins', () => {
  beforeEach(() => void (http.knownMs = 0));

  it.each([
    [401, 'its key is revoked', () => http.revoked, 'this API key is malformed, unknown or revoked'],
    [403, 'its account is suspended', () => http.suspended, 'this account is suspended'],
  ])('gets %i if %s while its body arrives', async (status, _, ended, detail) => {
    const [newKey, run] = [await begin('/v1/keys', '{"name":"more"}'), await begin(`/v1/sources/${SOURCE}/run`, '{"event":1}')];
    ended().add('my-key');
    for (const response of [await newKey(), await run()]) {
      expect(response.status).toBe(status);
      expect(JSON.parse(response.problem)).toMatchObject({ status, detail });
      expect(/^www-authenticate: Bearer\r$/im.test(response.top)).toBe(status === 401);
    }
    expect([http.issued, http.messages.requests, http.messages.published]).toEqual([[], [], []]);
  });

  it('gets 401 if its key is revoked while it waits for its turn', async () => {
    const found = Promise.withResolvers<void>();
    http.messages.replyTo(getSource, (async ({ id }: SourceReference) => {
      await found.promise;
      return { id } as Source;
    }) as never);
    const responses = Array.from({ length: 65 }, () => http.send('GET', `/v1/sources/${SOURCE}`));
    while (http.messages.requests.length < 64) await new Promise((resolve) => setImmediate(resolve));
    http.revoked.add('my-key');
    found.resolve();
    expect((await Promise.all(responses)).map(({ status }) => status).sort()).toEqual([...Array(64).fill(200), 401]);
  });

  it('is executed if its key still opens the account', async () => {
    const run = await begin(`/v1/sources/${SOURCE}/run`, '{"event":1}');
    expect((await run()).status).toBe(202);
    expect(http.lookedUp).toEqual(['my-key', 'my-key']);
  });
});

it('a request that does not wait is authenticated once', async () => {
  expect((await http.send('POST', `/v1/sources/${SOURCE}/run`, { body: {} })).status).toBe(202);
  expect(http.lookedUp).toEqual(['my-key']);
});
