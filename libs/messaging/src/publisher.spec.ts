import { describe, expect, it } from '@jest/globals';
import type { KafkaClient } from './kafka.js';
import { Publisher } from './publisher.js';

/** A publisher whose batches the broker takes when the test says so. */
function controlled() {
  const batches: { keys: unknown[]; taken(): void }[] = [];
  let begun = Promise.withResolvers<void>();
  const sendBatch = ({ topicMessages }: { topicMessages: { messages: { key: unknown }[] }[] }) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    batches.push({ keys: topicMessages.flatMap(({ messages }) => messages.map(({ key }) => key)), taken: resolve });
    begun.resolve();
    begun = Promise.withResolvers();
    return promise;
  };
  const kafka = { producer: () => ({ sendBatch, connect: async () => {}, disconnect: async () => {} }), onFatal: () => {} };
  return { publisher: new Publisher(kafka as unknown as KafkaClient), batches, begun: () => begun.promise };
}

const record = (key: string, value = '1') => [{ topic: 'events', key, value }];
const MIB = 1024 * 1024;

describe('a publisher', () => {
  it('sends what comes while a batch is under way in the next one, in order', async () => {
    const { publisher, batches, begun } = controlled();
    const [first, sent] = [begun(), publisher.send(record('a'))];
    await first;
    const second = begun();
    const rest = Promise.all([publisher.send(record('b')), publisher.send(record('c'))]);
    batches[0]?.taken();
    await Promise.all([sent, second]);
    batches[1]?.taken();
    await rest;
    expect(batches.map(({ keys }) => keys)).toEqual([['a'], ['b', 'c']]);
  });

  it('gives up after the given time, and then does not send what had not begun', async () => {
    const { publisher, batches, begun } = controlled();
    const first = begun();
    const underWay = publisher.send(record('a'));
    await first;
    const late = publisher.send(record('b'), { withinMs: 1 });
    const patient = publisher.send(record('c'));
    await expect(late).rejects.toMatchObject({ code: 'unavailable' });
    const second = begun();
    batches[0]?.taken();
    await second;
    batches[1]?.taken();
    await Promise.all([underWay, patient]);
    expect(batches.map(({ keys }) => keys)).toEqual([['a'], ['c']]);
  });

  it('refuses records with a time limit at once while many wait, all of a call or none, and others never', async () => {
    const { publisher, batches, begun } = controlled();
    const first = begun();
    const large = 'x'.repeat(MIB);
    const waiting = Array.from({ length: 63 }, (_, n) => publisher.send(record(`${n}`, large), { withinMs: 1000 }));
    let rejected = false;
    void Promise.race(waiting).catch(() => (rejected = true));
    await first;
    const two = [...record('63', large), ...record('64', large)];
    await expect(publisher.send(two, { withinMs: 100_000 })).rejects.toMatchObject({
      code: 'unavailable',
      details: { reason: 'the message log does not accept records' },
    });
    expect(rejected).toBe(false);
    const patient = publisher.send(two);
    expect((await Promise.allSettled(waiting)).map(({ status }) => status)).toEqual(Array(63).fill('rejected'));
    const again = publisher.send(record('again', large), { withinMs: 60_000 });
    for (const batch of batches) {
      const next = begun();
      batch.taken();
      if (batches.length < 4) await next;
    }
    await Promise.all([patient, again]);
    expect(batches.map(({ keys }) => keys)).toEqual([['0'], ['63'], ['64'], ['again']]);
  });

  it('sends the records of accounts in turns, and those of one account in their order', async () => {
    const { publisher, batches, begun } = controlled();
    const first = begun();
    const sent = [publisher.send(record('under way'))];
    await first;
    for (let n = 0; n < 5; n++) sent.push(publisher.send(record(`a${n}`), { account: 'a' }));
    for (let n = 0; n < 2; n++) sent.push(publisher.send(record(`b${n}`), { account: 'b' }));
    const second = begun();
    batches[0]?.taken();
    await second;
    batches[1]?.taken();
    await Promise.all(sent);
    expect(batches[1]?.keys).toEqual(['a0', 'b0', 'a1', 'b1', 'a2', 'a3', 'a4']);
  });

  it('refuses records of an account of which many wait, and takes those of another', async () => {
    const { publisher, batches, begun } = controlled();
    const first = begun();
    const large = 'x'.repeat(MIB);
    const waiting = Array.from({ length: 15 }, (_, n) => publisher.send(record(`${n}`, large), { withinMs: 50, account: 'a' }));
    const ended = Promise.allSettled(waiting);
    await first;
    await expect(publisher.send(record('16', large), { withinMs: 50, account: 'a' })).rejects.toMatchObject({ code: 'too_many_requests' });
    const other = publisher.send(record('other', large), { withinMs: 60_000, account: 'b' });
    await ended;
    const again = publisher.send(record('again', large), { withinMs: 60_000, account: 'a' });
    for (const batch of batches) {
      const next = begun();
      batch.taken();
      if (batches.length < 3) await next;
    }
    await Promise.all([other, again]);
    expect(batches.map(({ keys }) => keys)).toEqual([['0'], ['other'], ['again']]);
  });
});
