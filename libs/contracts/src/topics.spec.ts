import { expect, it } from '@jest/globals';
import { RECORDS_GONE_AFTER_DAYS, topicSpecs } from './topics.js';

const DAY_MS = 86_400_000;
/** Kafka deletes a segment when its newest record is old enough: its oldest record is older by the time that a segment covers. */
const keptFor = (config: Record<string, string> = {}): number => Number(config['retention.ms']) + Number(config['segment.ms']);

it('every topic that is not compacted has a retention, whatever the default of the brokers', () => {
  const unlimited = topicSpecs().filter(({ config }) => config?.['cleanup.policy'] !== 'compact' && config?.['retention.ms'] === undefined);
  expect(unlimited.map(({ topic }) => topic)).toEqual([]);
});

it('no record is kept much longer than the retention of its topic', () => {
  const longer = topicSpecs().filter(
    ({ config }) => config?.['cleanup.policy'] !== 'compact' && !(keptFor(config) <= 1.25 * Number(config?.['retention.ms'])),
  );
  expect(longer.map(({ topic }) => topic)).toEqual([]);
});

it('records of runs and facts are kept only while their ids are remembered', () => {
  const kept = topicSpecs().filter(({ isReadOnce }) => isReadOnce);
  expect(kept.map(({ topic }) => topic)).toEqual([
    'runtime.run.execute',
    'runtime.run.restore',
    'runtime.run.finished',
    'routing.error.raised',
  ]);
  for (const { config } of kept) expect(keptFor(config)).toBeLessThan(RECORDS_GONE_AFTER_DAYS * DAY_MS);
});

it('events are kept only while subscriptions to deleted emitters are', () => {
  const events = topicSpecs().find(({ topic }) => topic === 'events');
  expect(keptFor(events?.config)).toBeLessThan(RECORDS_GONE_AFTER_DAYS * DAY_MS);
});
