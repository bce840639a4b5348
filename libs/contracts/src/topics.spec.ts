import { expect, it } from '@jest/globals';
import { topicSpecs } from './topics.js';

it('every topic that is not compacted has a retention, whatever the default of the brokers', () => {
  const unlimited = topicSpecs().filter(({ config }) => config?.['cleanup.policy'] !== 'compact' && config?.['retention.ms'] === undefined);
  expect(unlimited.map(({ topic }) => topic)).toEqual([]);
});

it('records of runs and facts are kept for less than the eight days for which their ids are remembered', () => {
  const kept = topicSpecs().filter(({ isReadOnce }) => isReadOnce);
  expect(kept.map(({ topic }) => topic)).toEqual(['runtime.run.execute', 'runtime.run.finished', 'routing.error.raised']);
  for (const { config } of kept) expect(Number(config!['retention.ms']) + Number(config!['segment.ms'])).toBeLessThan(8 * 86_400_000);
});
