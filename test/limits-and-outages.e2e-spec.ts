import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type ApiResponse, type Api, http } from './support/api.js';
import { eventually } from './support/eventually.js';
import { startSystem, type System } from './support/system.js';
import { can, needing } from './support/target.js';

const LIMIT = 100;
const CODE = "export default { name: 'Here', run() {} }";

let system: System;
beforeAll(async () => {
  const variables = can('variables') ? { gateway: { SLUICE_REQUESTS_PER_MINUTE: String(LIMIT) } } : {};
  system = await startSystem({ variables, killsBroker: true });
});
afterAll(() => system?.stop());

/** A new account, with its whole limit unused, and the headers with its key. */
async function freshAccount(): Promise<{ api: Api; headers: Record<string, string> }> {
  const api = await system.account();
  return { api, headers: { authorization: `Bearer ${api.account.api_key}` } };
}
/** Repeats a request with an Idempotency-Key when its 409 says, so that it does not reach the limit of requests. */
const repeatedUntilDone = (post: () => Promise<ApiResponse>): Promise<ApiResponse> =>
  eventually(async () => {
    const response = await post();
    if (response.status === 409) await new Promise((resolve) => setTimeout(resolve, Number(response.headers['retry-after']) * 1000));
    expect(response.status).toBe(200);
    return response;
  });
const problem = ({ body, headers }: ApiResponse) => ({
  type: headers['content-type'],
  id: body.request_id === headers['x-request-id'],
  body,
});

needing('variables', 'accounts').describe('a limit of requests per account', () => {
  it('is stated in each response, and further requests are refused with 429', async () => {
    const { api, headers } = await freshAccount();
    const { api_key } = await system.sluice('key', 'create', '--account', api.account.id);
    const responses: ApiResponse[] = [];
    for (let n = 0; n < LIMIT + 2; n++) responses.push(await http('GET', `${api.baseUrl}/users/me`, { headers }));
    expect(responses.map(({ status }) => status)).toEqual([...Array<number>(LIMIT).fill(200), 429, 429]);
    expect(responses.map((response) => response.headers['ratelimit-remaining'])).toEqual(
      [...Array(LIMIT + 2).keys()].map((n) => String(Math.max(0, LIMIT - 1 - n))),
    );
    const refused = responses[LIMIT]!;
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60);
    expect(refused.headers).toMatchObject({
      'ratelimit-limit': String(LIMIT),
      'ratelimit-policy': `"default";q=${LIMIT};w=60`,
      ratelimit: expect.stringMatching(/^"default";r=0;t=\d+$/),
    });
    expect(problem(refused)).toMatchObject({
      type: 'application/problem+json',
      id: true,
      body: { status: 429, title: 'Too Many Requests', error: `this account may send at most ${LIMIT} requests per minute` },
    });
    // requests without an account count for nobody, and another account has its own limit
    const status = async (authorization: string) => (await http('GET', `${api.baseUrl}/users/me`, { headers: { authorization } })).status;
    expect(await status('Bearer nothing')).toBe(401);
    expect(await status(`Bearer ${api_key}`)).toBe(429);
    expect(await status((await freshAccount()).headers.authorization!)).toBe(200);
  });
});

describe('while a part of the system is down', () => {
  needing('pause', 'accounts').it(
    'a service that does not respond in time causes 504 with the id of the request, and others keep responding',
    async () => {
      const { api, headers: ofAccount } = await freshAccount();
      const headers = { ...ofAccount, 'x-request-id': 'a-request' };
      const { id } = await api.source(CODE);
      const connect = () =>
        http('POST', `${api.baseUrl}/connections`, {
          headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': 'late' },
          body: JSON.stringify({ app: 'late', credentials: { key: 'x' } }),
        });
      // otherwise the event store and the gateway may still have to ask the catalog
      expect((await http('GET', `${api.baseUrl}/sources/${id}/event_summaries`, { headers })).status).toBe(200);
      expect((await http('DELETE', `${api.baseUrl}/sources/${id}/events`, { headers })).status).toBe(202);
      await system.apps.pause('catalog');
      try {
        const [late, webhooks, deletion, connection] = await Promise.all([
          http('GET', `${api.baseUrl}/sources/${id}`, { headers }),
          http('GET', `${api.baseUrl}/users/me/webhooks`, { headers }),
          http('DELETE', `${api.baseUrl}/sources/${id}/events`, { headers }),
          connect(),
        ]);
        expect(connection.status).toBe(504);
        expect(webhooks.status).toBe(200);
        expect(deletion.status).toBe(202);
        expect(late.status).toBe(504);
        expect(problem(late)).toMatchObject({ type: 'application/problem+json', id: true, body: { status: 504, request_id: 'a-request' } });
        expect(late.text).not.toMatch(/catalog|kafka|\bat /i);
      } finally {
        await system.apps.resume('catalog');
      }
      await eventually(async () => expect((await http('GET', `${api.baseUrl}/sources/${id}`, { headers })).status).toBe(200));
      // the service refuses the late request, which frees its Idempotency-Key
      await repeatedUntilDone(connect);
    },
  );

  needing('pause', 'control', 'accounts').it(
    'a POST can be repeated with its Idempotency-Key soon after its gateway was killed',
    async () => {
      const { api, headers } = await freshAccount();
      const connect = () =>
        http('POST', `${api.baseUrl}/connections`, {
          headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': 'killed' },
          body: JSON.stringify({ app: 'killed', credentials: { key: 'x' } }),
        });
      await system.apps.pause('catalog');
      try {
        // whichever of them is first
        const both = [connect(), connect()].map((request) => request.catch(() => 'no response' as const));
        const beside = await Promise.race(both);
        if (beside === 'no response') throw new Error('the gateway has closed the connection');
        expect(beside.status).toBe(409);
        expect(Number(beside.headers['retry-after'])).toBeLessThanOrEqual(10);
        expect(Number(beside.headers['retry-after'])).toBeGreaterThan(5);
        await system.apps.kill('gateway');
        expect(await Promise.all(both)).toContain('no response');
      } finally {
        await system.apps.resume('catalog');
      }
      await system.apps.whenReady('gateway');
      const repeated = (await repeatedUntilDone(connect)).body.data.id as string;
      const { body } = await http('GET', `${api.baseUrl}/connections`, { headers });
      expect((body.data as { id: string }[]).map(({ id }) => id)).toEqual([repeated]);
    },
  );

  needing('broker', 'accounts').it('a missing Kafka causes 503 for requests that need it, until it is back', async () => {
    const { api, headers } = await freshAccount();
    const { id } = await api.source(CODE);
    await system.broker.kill();
    const create = () =>
      http('POST', `${api.baseUrl}/sources`, {
        headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': 'once' },
        body: JSON.stringify({ component_code: CODE, name: 'once' }),
      });
    // alone in its batch: Kafka gets it after the response
    const created = create();
    await new Promise((resolve) => setTimeout(resolve, 500));
    const [published, read, made, removed, me] = await Promise.all([
      http('POST', `${api.baseUrl}/sources/${id}/events`, { headers: { ...headers, 'content-type': 'application/json' }, body: '1' }),
      http('GET', `${api.baseUrl}/sources/${id}`, { headers }),
      http('POST', `${api.baseUrl}/webhooks?url=http://localhost:1/`, { headers }),
      http('DELETE', `${api.baseUrl}/sources/${id}`, { headers }),
      http('GET', `${api.baseUrl}/users/me`, { headers }),
    ]);
    expect([published, read, made, removed, me].map(({ status }) => status)).toEqual([503, 503, 503, 503, 200]);
    expect((await created).status).toBe(503);
    expect(Number(published.headers['retry-after'])).toBeGreaterThan(0);
    expect(problem(made)).toMatchObject({
      type: 'application/problem+json',
      id: true,
      body: { status: 503, title: 'Service Unavailable' },
    });
    expect(read.text).not.toMatch(/kafka|broker|127\.0\.0\.1/i);
    await system.broker.start();
    await eventually(async () => {
      const again = await http('GET', `${api.baseUrl}/sources/${id}`, { headers });
      // the response to the deletion was 503, but it may still have been carried out
      expect([200, 404]).toContain(again.status);
    });
    const repeated = await eventually(async () => {
      const response = await create();
      expect(response.status).toBe(200);
      return response.body.data.id as string;
    });
    const { body } = await http('GET', `${api.baseUrl}/users/me/sources?limit=100`, { headers });
    const once = (body.data as { id: string; name: string }[]).filter(({ name }) => name === 'once');
    expect(once.map((source) => source.id)).toEqual([repeated]);
  });
});
