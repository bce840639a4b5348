import { describe, expect, it, jest } from '@jest/globals';
import type { Admin } from 'kafkajs';
import { createLog } from '#observability';
import type { KafkaClient } from './kafka.js';
import { LogEnds } from './log-ends.js';

const TOPIC = 'events';

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** `ends`: the end that the brokers return to each question; an error, if they do not know it. */
function logEnds(...ends: (number | Error)[]) {
  const asked: string[] = [];
  const early = jest.fn();
  const admin = {
    fetchTopicOffsets: async (topic: string) => {
      asked.push(topic);
      const end = ends.shift();
      if (end instanceof Error) throw end;
      return [
        { partition: 0, high: '100' },
        { partition: 1, high: String(end) },
      ];
    },
  };
  const kafka = { withAdmin: async (work: (admin: Admin) => Promise<unknown>) => work(admin as unknown as Admin) };
  const checker = new LogEnds(kafka as unknown as KafkaClient, createLog('test', 'silent'), early);
  const check = (end: number, next?: number) => checker.check({ topic: TOPIC, partition: 1, highWatermark: String(end) }, next);
  return { check, asked, early };
}

describe('a fetch without records', () => {
  it.each([
    ['at the end of the log', 5, 5],
    ['before the reader knows its position', 5, undefined],
  ])('asks the brokers nothing %s', (_, end, next) => {
    const { check, asked } = logEnds();
    check(end, next);
    expect(asked).toEqual([]);
  });

  it('below the position of its reader shows another log, if the brokers confirm the end', async () => {
    const { check, asked, early } = logEnds(1);
    check(1, 2);
    // one question at a time
    check(1, 2);
    await settle();
    expect(early.mock.calls).toEqual([[TOPIC, 1, 1, 2]]);
    expect(asked).toEqual([TOPIC]);
  });

  it('shows nothing while a new leader does not know the end, and asks again', async () => {
    const { check, asked, early } = logEnds(new Error('leadership election'), 2, 1);
    for (const calls of [0, 0, 1]) {
      check(1, 2);
      await settle();
      expect(early).toHaveBeenCalledTimes(calls);
    }
    expect(asked).toHaveLength(3);
  });
});
