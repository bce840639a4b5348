import { AFTER_ALL, BEFORE_ALL, comparePlaces, type DeletedRange, mergedSpans, type Span } from '#events';

/** More than any `seq`: a place is a number in ranges of places, with which PostgreSQL finds one among thousands. */
export const SEQS = 10n ** 16n;

/** The places that these ranges cover. One that ends before it starts covers none. */
export const spansOf = (ranges: Pick<DeletedRange, 'start' | 'end'>[]): Span[] =>
  mergedSpans(
    ranges
      .map(({ start, end }) => ({ first: start ?? BEFORE_ALL, last: end ?? AFTER_ALL }))
      .filter(({ first, last }) => comparePlaces(first, last) <= 0),
  );

/** Fewer spans that cover these, and the least of what is between them. `spans`: in their order. */
export function coarseSpans(spans: Span[], atMost: number): Span[] {
  const gaps = spans.slice(1).map(({ first }, index) => ({ before: index + 1, ms: first.ms - spans[index]!.last.ms }));
  const widest = gaps.toSorted((a, b) => b.ms - a.ms).slice(0, atMost - 1);
  const starts = [0, ...widest.map(({ before }) => before).sort((a, b) => a - b), spans.length];
  return starts.slice(1).map((end, index) => ({ first: spans[starts[index]!]!.first, last: spans[end - 1]!.last }));
}

/** SQL: the first and the last places of the spans, as arrays of `ms` and `seq`. */
export const boundsOf = (spans: Span[]): [number[], number[], number[], number[]] => [
  spans.map(({ first }) => first.ms),
  spans.map(({ first }) => first.seq),
  spans.map(({ last }) => last.ms),
  spans.map(({ last }) => last.seq),
];

/** SQL: the places in the spans, as numbers. */
export const placesIn = (spans: Span[]): string =>
  `{${spans.map(({ first, last }) => `[${[first, last].map(({ ms, seq }) => BigInt(ms) * SEQS + BigInt(seq)).join()}]`).join()}}`;

/** SQL: the `ms` of places in the spans, which are compared in much less time than places. */
export const timesIn = (spans: Span[]): string => `{${spans.map(({ first, last }) => `[${first.ms},${last.ms}]`).join()}}`;
