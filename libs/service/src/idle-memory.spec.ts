import { expect, it } from '@jest/globals';
import { collectionsOf } from './idle-memory.js';

const MB = 1024 * 1024;

it.each([
  ['while the service starts', { before: 0, size: 100 * MB, idleLooks: 2 }, 0],
  ['when its start is over', { before: 0, size: 100 * MB, idleLooks: 3 }, 3],
  ['when the heap has hardly grown', { before: 60 * MB, size: 62 * MB, idleLooks: 3 }, 0],
  ['when a burst of work is over', { before: 60 * MB, size: 90 * MB, idleLooks: 3 }, 3],
  ['when the heap of an idle service has grown a little', { before: 60 * MB, size: 70 * MB, idleLooks: 100 }, 0],
  ['when the heap of an idle service has grown', { before: 60 * MB, size: 90 * MB, idleLooks: 100 }, 1],
  ['when the service works', { before: 60 * MB, size: 300 * MB, idleLooks: 0 }, 0],
])('garbage is collected only while a service is idle and has much of it: %s', (_, heap, expected) => {
  expect(collectionsOf(heap)).toBe(expected);
});
