import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Admin } from 'kafkajs';
import type { EmitterId } from '#contracts';
import { type KafkaClient, partitionOf } from '#messaging';
import { createLog } from '#observability';
import { LogProgress, type Offsets } from './log-progress.js';

class Progress extends LogProgress {
  constructor(
    kafka: KafkaClient,
    protected override readonly readTo: () => Promise<Offsets>,
  ) {
    super(kafka, createLog('test', 'silent'), 'events', 'the reader');
  }
}

const EMITTER: EmitterId = 'dc_1';
const OTHER: EmitterId = 'dc_3';
const [own, other] = [partitionOf(EMITTER, 2), partitionOf(OTHER, 2)];

describe('a question about what a log contains', () => {
  /** By partition: the first offset that Kafka has, and the next one. */
  let log: Record<number, [low: number, high: number]>;
  let read: Record<number, number>;
  let asked: number;
  let kafkaResponds: Promise<void>;
  let progress: Progress;

  beforeEach(() => {
    jest.useFakeTimers();
    log = { [own]: [0, 10], [other]: [0, 10] };
    read = { [own]: 10, [other]: 10 };
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
    const readTo = async () => new Map(Object.entries(read).map(([partition, offset]) => [Number(partition), offset]));
    progress = new Progress({ admin: () => admin } as unknown as KafkaClient, readTo);
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  /** Asks, and returns what became of it, once that is known. */
  function ask(emitters: EmitterId[] = [EMITTER], withinMs = 5000): { outcome?: string } {
    const state: { outcome?: string } = {};
    progress.reachEnd(Date.now() + withinMs, emitters.length > 0 ? emitters : undefined).then(
      () => (state.outcome = 'reached'),
      (error: { code?: string }) => (state.outcome = error.code),
    );
    return state;
  }

  it('waits until the reader has read what the log contained when it came, but nothing that came later', async () => {
    read[own] = 8;
    const question = ask();
    await jest.advanceTimersByTimeAsync(1000);
    log[own] = [0, 20];
    read[own] = 9;
    await jest.advanceTimersByTimeAsync(1000);
    expect(question).toEqual({});
    read[own] = 10;
    await jest.advanceTimersByTimeAsync(300);
    expect(question).toEqual({ outcome: 'reached' });
    expect(asked).toBe(1);
  });

  it.each<[string, () => void, EmitterId[], string | undefined]>([
    ['does not wait for partitions of other emitters', () => (read[other] = 0), [EMITTER], 'reached'],
    ['waits for each partition of its emitters', () => (read[other] = 0), [EMITTER, OTHER], undefined],
    ['waits for all partitions if it names no emitters', () => (read[other] = 0), [], undefined],
    ['does not wait for records that retention has deleted', () => ((log[own] = [10, 10]), (read[own] = 5)), [EMITTER], 'reached'],
    [
      'does not wait for a partition that was never read while it is empty',
      () => ((log[own] = [0, 0]), delete read[own]),
      [EMITTER],
      'reached',
    ],
    ['waits for a partition that was never read', () => delete read[own], [EMITTER], undefined],
  ])('%s', async (_, given, emitters, outcome) => {
    given();
    const question = ask(emitters);
    await jest.advanceTimersByTimeAsync(100);
    expect(question.outcome).toBe(outcome);
  });

  it('is refused shortly before its caller stops waiting', async () => {
    read[own] = 9;
    const question = ask([EMITTER], 5000);
    await jest.advanceTimersByTimeAsync(4100);
    expect(question).toEqual({});
    await jest.advanceTimersByTimeAsync(500);
    expect(question).toEqual({ outcome: 'unavailable' });
  });

  it('is refused at once while many others wait, so that other requests are handled', async () => {
    read[own] = 9;
    const questions = Array.from({ length: 65 }, () => ask());
    await jest.advanceTimersByTimeAsync(100);
    expect(questions.filter(({ outcome }) => outcome === 'unavailable')).toHaveLength(1);
    const ofAnother = ask([OTHER]);
    await jest.advanceTimersByTimeAsync(100);
    expect(ofAnother).toEqual({ outcome: 'reached' });
    read[own] = 10;
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
