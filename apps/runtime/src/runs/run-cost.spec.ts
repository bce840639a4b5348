import { describe, expect, it } from '@jest/globals';
import { EVENTS_TOPIC } from '#contracts';
import type { RunStatus } from '../sandbox/sandbox.js';
import { additionalUnits, bytesRead, isLarge } from './run-cost.js';
import type { RunEffects } from './run-effects.js';

const KIB = 1024;

const event = (bytes: number) => ({ topic: EVENTS_TOPIC, key: 'dc_1', value: Buffer.alloc(bytes) });
const events = (count: number, bytes: number) => ({ records: Array.from({ length: count }, () => event(bytes)) });
const waiting = (bytes: number) => ({ emit_id: 'e', due_at_ms: 1, record: { ...event(bytes), headers: {} } as never });
const effects = (some: Partial<RunEffects>): Pick<RunEffects, 'records' | 'waiting' | 'db' | 'dedupe' | 'attempt'> => ({
  ...{ records: [], waiting: [], db: {}, dedupe: null, attempt: null },
  ...some,
});

describe('the cost of a run', () => {
  it.each<[string, Partial<RunEffects>, number, RunStatus, number]>([
    ['does nothing', {}, 0, 'ok', 0],
    ['occupies the main thread', {}, 7, 'ok', 7],
    ['is killed', {}, 0, 'memory', 20],
    ['reports its end', { records: [{ topic: 'runs', key: 'u', value: '' }] }, 0, 'ok', 0],
    ['emits small events', events(10, 0), 0, 'ok', 5],
    ['emits nine events of 900 KiB', events(9, 900 * KIB), 0, 'ok', 4.5 + (9 * 900) / 64],
    ['logs 500 lines of 16 KiB', events(500, 16 * KIB), 0, 'ok', 250 + (500 * 16) / 64],
    ['emits an event that waits, and shows it', { ...events(1, 64 * KIB), waiting: [waiting(64 * KIB)] }, 0, 'ok', 3],
    ['changes `this.db`', { db: { ab: 'x'.repeat(640 * KIB - 3), c: null } }, 0, 'ok', 10],
    ['remembers long ids', { dedupe: { ids: ['x'.repeat(64 * KIB), 'x'.repeat(64 * KIB)] } }, 0, 'ok', 2],
    [
      'will be repeated with its event',
      { attempt: { firstRunId: 'r', sourceId: 'dc_1', next: { event: 'x'.repeat(64 * KIB) } as never } },
      0,
      'threw',
      1,
    ],
  ])('the cost of a run that %s is as expected', (_, some, ms, status, expected) =>
    expect(additionalUnits(status, effects(some), { read: 0, ms })).toBeCloseTo(expected, 5),
  );

  it('includes its event and the state that it reads', () => {
    const read = bytesRead(
      { event: 'x'.repeat(64 * KIB), http_body: 'x'.repeat(64 * KIB) },
      { db: { a: 'x'.repeat(64 * KIB - 129) }, dedupe: {} },
    );
    expect(additionalUnits('ok', effects({}), { read, ms: 0 })).toBeCloseTo(3, 5);
  });

  it('includes the rows of the state, however small they are', () => {
    const db = Object.fromEntries(Array.from({ length: 512 }, (_, n) => [`k${n}`, '']));
    const read = bytesRead({ event: '' }, { db, dedupe: {} });
    expect(additionalUnits('ok', effects({}), { read, ms: 0 })).toBeGreaterThan(1);
  });

  it('counts as large from 64 KiB on', () => {
    expect([isLarge(effects(events(2, 32 * KIB))), isLarge(effects({ ...events(2, 32 * KIB), db: { a: '1' } }))]).toEqual([false, true]);
  });
});
