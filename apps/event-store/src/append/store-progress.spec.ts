import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Admin } from 'kafkajs';
import type { EmitterId } from '#contracts';
import { type KafkaClient, partitionOf } from '#messaging';
import { createLog } from '#observability';
import type { AppendRepository } from './append.repository.js';
import { StoreProgress } from './store-progress.js';

const EMITTER: EmitterId = 'dc_1';
const OTHER: EmitterId = 'dc_3';
const [own, other] = [partitionOf(EMITTER, 2), partitionOf(OTHER, 2)];

describe('a question about deletions', () => {
  /** By partition: the first offset that Kafka has, and the next one. */
  let log: Record<number, [low: number, high: number]>;
  let stored: Record<number, number>;
  let asked: number;
  let kafkaResponds: Promise<void>;
  let progress: StoreProgress;

  beforeEach(() => {
    jest.useFakeTimers();
    log = { [own]: [0, 10], [other]: [0, 10] };
    stored = { [own]: 10, [other]: 10 };
    asked = 0;
    kafkaResponds = Promise.resolve();
    const fetchTopicOffsets = async () => {
      asked += 1;
      const ends = Object.entries(log).map(([partition, [low, high]]) => ({
        partition: Number(partition),
        low: `${low}`,
        high: `${high}`,
      }));
      await kafkaResponds;
      return ends;
    };
    const admin = { connect: async () => {}, disconnect: async () => {}, fetchTopicOffsets } as unknown as Admin;
    const events = {
      storedPositions: async () =>
        Object.entries(stored).map(([partition, offset]) => ({ partition: Number(partition), offset, clock: 0 })),
    };
    progress = new StoreProgress(
      { admin: () => admin } as unknown as KafkaClient,
      createLog('test', 'silent'),
      events as unknown as AppendRepository,
    );
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  /** Asks, and returns what became of it, once that is known. */
  function ask(emitters: EmitterId[] = [EMITTER], withinMs = 5000): { outcome?: string } {
    const state: { outcome?: string } = {};
    progress.reachEnd(emitters, Date.now() + withinMs).then(
      () => (state.outcome = 'reached'),
      (error: { code?: string }) => (state.outcome = error.code),
    );
    return state;
  }

  it('waits until the store has read what the log contained when it came, but nothing that came later', async () => {
    stored[own] = 8;
    const question = ask();
    await jest.advanceTimersByTimeAsync(1000);
    log[own] = [0, 20];
    stored[own] = 9;
    await jest.advanceTimersByTimeAsync(1000);
    expect(question).toEqual({});
    stored[own] = 10;
    await jest.advanceTimersByTimeAsync(300);
    expect(question).toEqual({ outcome: 'reached' });
    expect(asked).toBe(1);
  });

  it.each<[string, () => void, EmitterId[], string | undefined]>([
    ['does not wait for partitions of other emitters', () => (stored[other] = 0), [EMITTER], 'reached'],
    ['waits for each partition of its emitters', () => (stored[other] = 0), [EMITTER, OTHER], undefined],
    ['does not wait for records that retention has deleted', () => ((log[own] = [10, 10]), (stored[own] = 5)), [EMITTER], 'reached'],
    [
      'does not wait for a partition that was never read while it is empty',
      () => ((log[own] = [0, 0]), delete stored[own]),
      [EMITTER],
      'reached',
    ],
    ['waits for a partition that was never read', () => delete stored[own], [EMITTER], undefined],
  ])('%s', async (_, given, emitters, outcome) => {
    given();
    const question = ask(emitters);
    await jest.advanceTimersByTimeAsync(100);
    expect(question.outcome).toBe(outcome);
  });

  it('is refused shortly before its caller stops waiting', async () => {
    stored[own] = 9;
    const question = ask([EMITTER], 5000);
    await jest.advanceTimersByTimeAsync(4100);
    expect(question).toEqual({});
    await jest.advanceTimersByTimeAsync(500);
    expect(question).toEqual({ outcome: 'unavailable' });
  });

  it('is refused at once while many others wait, so that other requests are handled', async () => {
    stored[own] = 9;
    const questions = Array.from({ length: 65 }, () => ask());
    await jest.advanceTimersByTimeAsync(100);
    expect(questions.filter(({ outcome }) => outcome === 'unavailable')).toHaveLength(1);
    const ofAnother = ask([OTHER]);
    await jest.advanceTimersByTimeAsync(100);
    expect(ofAnother).toEqual({ outcome: 'reached' });
    stored[own] = 10;
    await jest.advanceTimersByTimeAsync(300);
    expect(questions.filter(({ outcome }) => outcome === 'reached')).toHaveLength(64);
  });

  it('shares the request to the brokers with those that come at the same time, but never one that began before it came', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    kafkaResponds = promise;
    const first = [ask(), ask(), ask([OTHER])];
    await jest.advanceTimersByTimeAsync(5);
    expect(asked).toBe(1);
    log[own] = [0, 11];
    const later = [ask(), ask()];
    resolve();
    await jest.advanceTimersByTimeAsync(30);
    expect(asked).toBe(2);
    expect(first.map(({ outcome }) => outcome)).toEqual(Array(3).fill('reached'));
    expect(later).toEqual([{}, {}]);
  });

  it('makes at most fifty requests per second to the brokers', async () => {
    for (let n = 0; n < 1000; n++) {
      ask();
      await jest.advanceTimersByTimeAsync(1);
    }
    expect(asked).toBeLessThanOrEqual(51);
  });

  it('is refused if the brokers do not respond, and the next one asks them again', async () => {
    kafkaResponds = new Promise(() => {});
    const question = ask();
    await jest.advanceTimersByTimeAsync(2100);
    expect(question).toEqual({ outcome: 'unavailable' });
    kafkaResponds = Promise.reject(new Error('no leader'));
    const next = ask();
    await jest.advanceTimersByTimeAsync(100);
    expect(next).toEqual({ outcome: 'unavailable' });
    kafkaResponds = Promise.resolve();
    const last = ask();
    await jest.advanceTimersByTimeAsync(100);
    expect(last).toEqual({ outcome: 'reached' });
  });
});
