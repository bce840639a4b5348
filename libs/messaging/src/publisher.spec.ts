import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { KafkaClient } from './kafka.js';
import { Publisher } from './publisher.js';

/** A publisher whose batches the broker takes when the test says so. */
function controlled() {
  const batches: { keys: unknown[]; taken(): void }[] = [];
  let begun = Promise.withResolvers<void>();
  const sendBatch = ({ topicMessages }: { topicMessages: { messages: { key: unknown }[] }[] }) => {
    const { promise, resolve } = Promise.withResolvers<unknown[]>();
    batches.push({ keys: topicMessages.flatMap(({ messages }) => messages.map(({ key }) => key)), taken: () => resolve([]) });
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

  it('fails only the caller of a record that the broker refuses, and sends those in the same batch again', async () => {
    const batches: unknown[][] = [];
    const sendBatch = async ({ topicMessages }: { topicMessages: { messages: { key: unknown }[] }[] }) => {
      const keys = topicMessages.flatMap(({ messages }) => messages.map(({ key }) => key));
      batches.push(keys);
      if (keys.includes('large')) throw Object.assign(new Error('too large'), { type: 'MESSAGE_TOO_LARGE' });
      return [];
    };
    const publisher = new Publisher({ producer: () => ({ sendBatch }) } as unknown as KafkaClient);
    const sent = await Promise.allSettled(['a', 'large', 'b'].map((key) => publisher.send(record(key))));
    expect(sent.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(batches).toEqual([['a', 'large', 'b'], ['a'], ['large'], ['b']]);
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

describe('a record that must not be written twice', () => {
  /** The log has what the producers do, in order; the outcome of each idempotent batch is taken from `outcomes`, or is good. */
  function idempotent(outcomes: (Error | undefined)[] = []) {
    const log: string[] = [];
    let count = 0;
    const producer = ({ idempotent: isIdempotent = false }: { idempotent?: boolean }) => {
      const name = isIdempotent ? `idempotent ${++count}` : 'usual';
      const sendBatch = async ({ topicMessages }: { topicMessages: { messages: { key: unknown }[] }[] }) => {
        log.push(`${name}: ${topicMessages.flatMap(({ messages }) => messages.map(({ key }) => key)).join(' ')}`);
        const outcome = isIdempotent ? outcomes.shift() : undefined;
        if (outcome) throw outcome;
        return [];
      };
      return { sendBatch, connect: async () => {}, disconnect: async () => void log.push(`${name} ends`) };
    };
    const publisher = new Publisher({ producer, onFatal: () => {} } as unknown as KafkaClient);
    return { log, publisher, once: (key: string) => publisher.send(record(key), { once: true, account: 'a' }) };
  }

  it('is sent alone by an idempotent producer, in its order', async () => {
    const { log, publisher, once } = idempotent();
    const send = (key: string) => publisher.send(record(key), { account: 'a' });
    await Promise.all([send('a'), send('b'), once('c'), once('d'), send('e'), send('f')]);
    expect(log).toEqual(['usual: a b', 'idempotent 1: c', 'idempotent 1: d', 'usual: e f']);
  });

  it('has another producer than one that failed, because the broker would take it for the repetition of that record', async () => {
    const { log, publisher, once } = idempotent([new Error('out of order')]);
    const sent = await Promise.allSettled([once('a'), once('b')]);
    await publisher.close();
    expect(sent.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect(log.filter((line) => line !== 'usual ends')).toEqual([
      'idempotent 1: a',
      'idempotent 1 ends',
      'idempotent 2: b',
      'idempotent 2 ends',
    ]);
  });

  it('has another producer than one that is old, because the brokers may have lost their data and assign its id again', async () => {
    const { log, once } = idempotent();
    let now = 100_000;
    jest.spyOn(performance, 'now').mockImplementation(() => now);
    await once('a');
    now += 20_000;
    await once('b');
    now += 20_000;
    await once('c');
    jest.restoreAllMocks();
    expect(log).toEqual(['idempotent 1: a', 'idempotent 1: b', 'idempotent 1 ends', 'idempotent 2: c']);
  });
});

describe('records that may wait', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  const later = { mayWait: true };

  /** A publisher whose first batch has just been acknowledged. */
  async function afterBatch() {
    const { publisher, batches } = controlled();
    const first = publisher.send(record('first'), later);
    await jest.advanceTimersByTimeAsync(0);
    batches[0]?.taken();
    await first;
    const keys = () => batches.slice(1).map(({ keys }) => keys);
    return { publisher, batches, keys };
  }

  it('are sent together, some ms after the latest batch', async () => {
    const { publisher, keys } = await afterBatch();
    void publisher.send(record('a'), later);
    await jest.advanceTimersByTimeAsync(2);
    void publisher.send(record('b'), later);
    expect(keys()).toEqual([]);
    await jest.advanceTimersByTimeAsync(2);
    expect(keys()).toEqual([['a', 'b']]);
  });

  it('are sent at once if the latest batch is some ms old', async () => {
    const { publisher, keys } = await afterBatch();
    await jest.advanceTimersByTimeAsync(4);
    void publisher.send(record('a'), later);
    await jest.advanceTimersByTimeAsync(0);
    expect(keys()).toEqual([['a']]);
  });

  it('go with a record that may not, before it', async () => {
    const { publisher, keys } = await afterBatch();
    void publisher.send(record('a'), later);
    void publisher.send(record('b'));
    await jest.advanceTimersByTimeAsync(0);
    expect(keys()).toEqual([['a', 'b']]);
  });

  it('wait also when they come while a batch is under way', async () => {
    const { publisher, batches, keys } = await afterBatch();
    void publisher.send(record('a'));
    await jest.advanceTimersByTimeAsync(0);
    void publisher.send(record('b'), later);
    batches[1]?.taken();
    await jest.advanceTimersByTimeAsync(3);
    expect(keys()).toEqual([['a']]);
    await jest.advanceTimersByTimeAsync(1);
    expect(keys()).toEqual([['a'], ['b']]);
  });

  it('do not wait if they did not fit into a batch', async () => {
    const { publisher, batches, keys } = await afterBatch();
    for (const key of ['a', 'b', 'c']) void publisher.send(record(key, 'x'.repeat(MIB / 4)), later);
    await jest.advanceTimersByTimeAsync(4);
    batches[1]?.taken();
    await jest.advanceTimersByTimeAsync(0);
    expect(keys()).toEqual([['a'], ['b']]);
  });

  it('are sent before the publisher closes', async () => {
    const { publisher, batches, keys } = await afterBatch();
    const sent = publisher.send(record('a'), later);
    const closed = publisher.close();
    await jest.advanceTimersByTimeAsync(4);
    batches[1]?.taken();
    await jest.advanceTimersByTimeAsync(5);
    await Promise.all([sent, closed]);
    expect(keys()).toEqual([['a']]);
  });
});
