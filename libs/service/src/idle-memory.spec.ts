import { expect, it } from '@jest/globals';
import { isWorthCollecting } from './idle-memory.js';

const MB = 1024 * 1024;

it.each([
  ['after the start', { before: 0, size: 100 * MB, utilization: 0.01 }, true],
  ['soon after a collection', { before: 60 * MB, size: 70 * MB, utilization: 0.01 }, false],
  ['when the heap has grown', { before: 60 * MB, size: 90 * MB, utilization: 0.01 }, true],
  ['when the service works', { before: 60 * MB, size: 300 * MB, utilization: 0.3 }, false],
])('garbage is collected only while a service is idle and has much of it: %s', (_, heap, expected) => {
  expect(isWorthCollecting(heap)).toBe(expected);
});
