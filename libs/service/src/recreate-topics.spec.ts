import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { topicSpecsOf } from '#contracts';
import type { KafkaClient } from '#messaging';
import type { Log } from '#observability';
import { recreateDeletedTopics } from './recreate-topics.js';

const MINUTE_MS = 60_000;
const ALL = topicSpecsOf('gateway').map(({ topic }) => topic);

describe('topics that a service may not create', () => {
  /** Those that exist. */
  let topics: string[];
  let lines: { reason: string; topics: string[] }[];
  let stop: () => void;

  beforeEach(() => {
    jest.useFakeTimers();
    [topics, lines] = [ALL.slice(2), []];
    const admin = {
      connect: async () => {},
      disconnect: async () => {},
      on: () => {},
      events: {},
      listTopics: async () => topics,
      createTopics: async (request: { topics: { topic: string }[] }) => {
        const errors = request.topics.map(({ topic }) =>
          Object.assign(new Error('Topic authorization failed'), { topic, type: 'TOPIC_AUTHORIZATION_FAILED' }),
        );
        throw Object.assign(new Error('Topic creation errors'), { name: 'KafkaJSAggregateError', errors });
      },
    };
    const log = { error: (line: (typeof lines)[0]) => lines.push(line) } as unknown as Log;
    const kafka = { admin: () => admin } as unknown as KafkaClient;
    stop = recreateDeletedTopics('gateway', kafka, { partitions: 1, replicas: 1, minInSyncReplicas: 1 }, log);
  });
  afterEach(() => {
    stop();
    jest.useRealTimers();
  });

  it('are logged once, and then at growing intervals', async () => {
    await jest.advanceTimersByTimeAsync(MINUTE_MS - 1);
    expect(lines).toEqual([{ reason: expect.stringMatching(/^Kafka denies access/), topics: ALL.slice(0, 2) }]);
    await jest.advanceTimersByTimeAsync(60 * MINUTE_MS);
    expect(lines.length).toBeGreaterThan(3);
    expect(lines.length).toBeLessThan(8);
    const before = lines.length;
    await jest.advanceTimersByTimeAsync(10 * 60 * MINUTE_MS);
    expect(lines.length - before).toBeGreaterThan(5);
    expect(lines.length - before).toBeLessThan(12);
  });

  it('are logged again when others are missing, and when they are missing again', async () => {
    const next = () => jest.advanceTimersByTimeAsync(10_000);
    await next();
    topics = ALL.slice(1);
    await next();
    topics = ALL;
    await next();
    topics = ALL.slice(1);
    await next();
    expect(lines.map((line) => line.topics)).toEqual([ALL.slice(0, 2), ALL.slice(0, 1), ALL.slice(0, 1)]);
  });
});
