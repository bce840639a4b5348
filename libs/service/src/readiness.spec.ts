import { expect, it } from '@jest/globals';
import { Readiness } from './health.js';

it('states what a starting service waits for', async () => {
  const readiness = new Readiness();
  readiness.starting('Kafka at kafka:9092');
  expect(await readiness.reasons()).toEqual(['the service is starting: it waits for Kafka at kafka:9092']);
});

it('has no reason once the service has started and its database responds', async () => {
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

it('ends at once when the service stops', async () => {
  const readiness = new Readiness();
  readiness.started(() => Promise.resolve());
  readiness.stopping();
  readiness.started(() => Promise.resolve());
  expect(await readiness.reasons()).toEqual(['the service is stopping']);
});
