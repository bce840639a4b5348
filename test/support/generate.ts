import { type Random, seededRandom } from '../../libs/testing/src/seeded-random.js';
import { resolved, type Schema } from './openapi.js';

/** A random generator that can be repeated with its seed. */
export class Chance {
  private readonly next: Random;

  constructor(seed: number) {
    this.next = seededRandom(seed);
  }

  below = (n: number): number => Math.floor(this.next() * n);
  happens = (probability: number): boolean => this.next() < probability;
  oneOf = <T>(list: readonly T[]): T => list[this.below(list.length)]!;
}

/** A value that a schema allows: its example if it has one. */
export function sample(schema: Schema): unknown {
  const { type, example, default: preset, enum: values, properties, items } = resolved(schema);
  // a copy: the fuzzer changes it
  if (example !== undefined) return structuredClone(example) as unknown;
  if (preset !== undefined) return preset;
  if (values) return values[0];
  if (properties) return Object.fromEntries(Object.entries<Schema>(properties).map(([name, each]) => [name, sample(each)]));
  if (type === 'array') return items ? [sample(items)] : [];
  return { object: {}, integer: 1, number: 1, boolean: true }[[type].flat()[0] as string] ?? 'x';
}

const TEXTS = [
  '',
  ' ',
  'x',
  'null',
  '0',
  '-1',
  '101',
  '1e9',
  'true',
  '*',
  'dc_*',
  '%',
  '%25',
  '../..',
  '$errors',
  '$in',
  'default',
  'a\0b',
  '\ud800',
  'ü💧',
  "' OR 1=1 --",
  '{"$gt":""}',
  'x'.repeat(3000),
  '__proto__',
  'constructor',
  '1-1',
  '99999999999999999-1',
  'ZGNf',
  'http://x',
  'https://example.com/',
  'http://[',
  '2026-01-01',
  'NaN',
];

/** An arbitrary value that a client might send. */
export function anything(chance: Chance, depth = 0): unknown {
  const kind = chance.below(depth > 2 ? 6 : 8);
  if (kind < 3) return chance.oneOf(TEXTS);
  if (kind === 3) return chance.oneOf([0, -1, 1, 1.5, 1e300, 2 ** 53, 101]);
  if (kind === 4) return chance.happens(0.5);
  if (kind === 5) return null;
  const values = Array.from({ length: chance.below(4) }, () => anything(chance, depth + 1));
  return kind === 6 ? values : Object.fromEntries(values.map((value) => [chance.oneOf(TEXTS), value]));
}

export const anyText = (chance: Chance): string => chance.oneOf(TEXTS);
