import { expect, it } from '@jest/globals';
import type { Span } from '#events';
import { coarseSpans, spansOf } from './deleted-spans.js';

const at = (ms: number) => ({ ms, seq: 1 });
const span = (first: number, last: number): Span => ({ first: at(first), last: at(last) });
const shown = (spans: Span[]) => spans.map(({ first, last }) => [first.ms, last.ms]);

it('merges ranges that overlap, and leaves out those that end before they start', () => {
  const ranges = [
    { start: at(20), end: at(30) },
    { start: at(5), end: at(2) },
    { start: at(25), end: null },
    { start: null, end: at(1) },
  ];
  expect(shown(spansOf(ranges))).toEqual([
    [-1, 1],
    [20, Number.MAX_SAFE_INTEGER],
  ]);
});

it.each<[number, number[][]]>([
  [
    5,
    [
      [1, 2],
      [4, 5],
      [90, 90],
      [91, 95],
    ],
  ],
  [
    3,
    [
      [1, 2],
      [4, 5],
      [90, 95],
    ],
  ],
  [
    2,
    [
      [1, 5],
      [90, 95],
    ],
  ],
  [1, [[1, 95]]],
])('joins spans until there are at most %i, those first that are next to each other', (atMost, joined) => {
  expect(shown(coarseSpans([span(1, 2), span(4, 5), span(90, 90), span(91, 95)], atMost))).toEqual(joined);
});
