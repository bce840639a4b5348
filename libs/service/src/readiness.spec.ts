import { afterEach, expect, it, jest } from '@jest/globals';
import { createServer } from 'node:net';
import { HealthServer, Readiness, silentConsumers } from './health.js';

it('states what a starting service waits for', async () => {
  const readiness = new Readiness();
  readiness.starting('Kafka at kafka:9092');
  expect(await readiness.reasons()).toEqual(['the service is starting: it waits for Kafka at kafka:9092']);
});

it('a service is ready once it has started and its database responds', async () => {
  const readiness = new Readiness();
  readiness.started(() => Promise.resolve());
  expect(await readiness.reasons()).toEqual([]);
});

it('names a database that does not respond, and queries it once for concurrent probes', async () => {
  let looks = 0;
  const readiness = new Readiness();
  readiness.started(() => {
    looks += 1;
    return Promise.reject(new Error('connection refused'));
  });
  const reasons = await Promise.all([readiness.reasons(), readiness.reasons()]);
  expect(reasons).toEqual([['PostgreSQL does not respond: connection refused'], ['PostgreSQL does not respond: connection refused']]);
  expect(looks).toBe(1);
});

afterEach(() => void jest.useRealTimers());

it('names a database that hangs after two seconds, without further queries, until it responds', async () => {
  jest.useFakeTimers();
  const queries: PromiseWithResolvers<void>[] = [];
  const readiness = new Readiness();
  readiness.started(() => {
    const query = Promise.withResolvers<void>();
    queries.push(query);
    return query.promise;
  });
  for (let n = 0; n < 2; n++) {
    const probe = readiness.reasons();
    await jest.advanceTimersByTimeAsync(2000);
    expect(await probe).toEqual(['PostgreSQL does not respond: no response within 2 s']);
  }
  expect(queries).toHaveLength(1);
  const probe = readiness.reasons();
  queries[0]!.resolve();
  expect(await probe).toEqual([]);
});

it('does not blame a database whose connections are all in use', async () => {
  jest.useFakeTimers();
  const readiness = new Readiness();
  readiness.started(
    () => new Promise(() => {}),
    () => true,
  );
  const probe = readiness.reasons();
  await jest.advanceTimersByTimeAsync(2000);
  expect(await probe).toEqual(['all connections to PostgreSQL (SLUICE_DATABASE_POOL) are in use: no response within 2 s']);
});

it('does not reuse a result from before the database stopped', async () => {
  let isThere = true;
  const readiness = new Readiness();
  readiness.started(async () => {
    if (!isThere) throw new Error('connection refused');
  });
  expect(await readiness.reasons()).toEqual([]);
  isThere = false;
  expect(await readiness.reasons()).toEqual(['PostgreSQL does not respond: connection refused']);
});

it('ends at once when the service stops', async () => {
  const readiness = new Readiness();
  readiness.started(() => Promise.resolve());
  readiness.stopping();
  readiness.started(() => Promise.resolve());
  expect(await readiness.reasons()).toEqual(['the service is stopping']);
});

it('the metrics show whether the service is ready', async () => {
  let isThere = true;
  const readiness = new Readiness();
  readiness.started(async () => {
    if (!isThere) throw new Error('connection refused');
  });
  const healthPort = await freePort();
  const server = await HealthServer.listen({ healthPort, healthHost: '127.0.0.1' }, readiness);
  const shown = async () => /^sluice_ready .*$/m.exec(await (await fetch(`http://127.0.0.1:${healthPort}/metrics`)).text())?.[0];
  const before = await shown();
  isThere = false;
  expect([before, await shown()]).toEqual(['sluice_ready 1', 'sluice_ready 0']);
  await server.close();
});

async function freePort(): Promise<number> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', resolve);
  await promise;
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}

it('distinguishes a consumer whose plan of records waits from one that has no contact with Kafka', () => {
  const state = { group: 'g', vital: true, running: true, silentMs: 31_400, planning: false };
  expect(
    silentConsumers([
      { ...state, silentMs: 15_000 },
      { ...state, vital: false },
      state,
      { ...state, planning: true },
      { ...state, planning: true, running: false },
    ]),
  ).toEqual([
    'consumer group g has no contact with Kafka',
    'consumer group g has planned its records for 31 s: it waits for PostgreSQL or another service',
    'consumer group g has no contact with Kafka',
  ]);
});
