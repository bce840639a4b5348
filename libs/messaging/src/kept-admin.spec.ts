import { expect, it, jest } from '@jest/globals';
import type { Admin } from 'kafkajs';
import type { KafkaClient } from './kafka.js';
import { KeptAdmin } from './kept-admin.js';

/** A client whose admins note what happens to them; the first `refused` ones cannot connect. */
function fakeClient(refused = 0) {
  const log: string[] = [];
  let count = 0;
  const admin = () => {
    const name = `admin ${++count}`;
    const note = (what: string) => async () => void log.push(`${name} ${what}`);
    const connect = count <= refused ? () => Promise.reject(new Error('refused')) : note('connects');
    return { connect, disconnect: note('disconnects'), listTopics: note('works') } as unknown as Admin;
  };
  return { log, kafka: { admin } as unknown as KafkaClient };
}

it('a kept admin client stays connected until its work fails', async () => {
  const { log, kafka } = fakeClient();
  const kept = new KeptAdmin(kafka);
  const work = () => kept.withAdmin((admin) => admin.listTopics());
  await work();
  await work();
  await expect(kept.withAdmin(() => Promise.reject(new Error('the broker is down')))).rejects.toThrow('the broker is down');
  await work();
  await kept.close();
  expect(log).toEqual([
    'admin 1 connects',
    'admin 1 works',
    'admin 1 works',
    'admin 1 disconnects',
    'admin 2 connects',
    'admin 2 works',
    'admin 2 disconnects',
  ]);
});

it('a kept admin client connects again after it could not connect', async () => {
  const { log, kafka } = fakeClient(1);
  const kept = new KeptAdmin(kafka);
  const work = () => kept.withAdmin((admin) => admin.listTopics());
  await expect(work()).rejects.toThrow('refused');
  await work();
  expect(log).toEqual(['admin 1 disconnects', 'admin 2 connects', 'admin 2 works']);
});

it('a kept admin client connects again before work that comes later than its maximum age', async () => {
  const { log, kafka } = fakeClient();
  let now = 1000;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  const kept = new KeptAdmin(kafka, undefined, 500);
  for (const at of [1000, 1500, 1501]) {
    now = at;
    await kept.withAdmin((admin) => admin.listTopics());
  }
  jest.restoreAllMocks();
  expect(log).toEqual(['admin 1 connects', 'admin 1 works', 'admin 1 works', 'admin 1 disconnects', 'admin 2 connects', 'admin 2 works']);
});
