import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { FullAccount, RunRequest, Schedule, UserId } from '#contracts';
import type { Log } from '#observability';
import { freshDatabase, type FreshDatabase } from '#testing';
import type { WaitingData } from '#waiting-data';
import { schema } from '../database/schema.js';
import { phaseOf } from './next-tick.js';
import { Ticker } from './ticker.js';
import { TimersRepository } from './timers.repository.js';

const [ALICE, BOB] = ['u_alice', 'u_bob'] as UserId[] as [UserId, UserId];

let fresh: FreshDatabase;
let timers: TimersRepository;
let ticker: Ticker;
let full: UserId[];
let logged: unknown[];
beforeAll(async () => {
  fresh = await freshDatabase(schema);
  timers = new TimersRepository(fresh.database);
  const own = { list: () => full.map((owner_id): FullAccount => ({ owner_id, reason: 'full' })) } as WaitingData;
  ticker = new Ticker(timers, own, { warn: (...line: unknown[]) => void logged.push(line) } as unknown as Log);
});
afterAll(() => fresh?.drop());
beforeEach(async () => {
  await fresh.database.query('TRUNCATE deployment, timer, outbox CASCADE');
  full = [];
  logged = [];
});

afterEach(() => void jest.useRealTimers());

/** Timers of this account, one per source, that tick each minute and have been due for this many seconds. */
async function set(owner: UserId, secondsAgo: number, count = 1): Promise<void> {
  await fresh.database.query(
    `INSERT INTO deployment (source_id, owner_id, active, version, code_hash, configured_props, schedules, name_slug)
     SELECT 'dc_' || $1 || n, $1, true, 1, 'h', '{}', '{}', 'n' FROM generate_series(1, $2) AS n`,
    [owner, count],
  );
  await fresh.database.query(
    `INSERT INTO timer (source_id, account_id, prop, schedule, next_run_at)
     SELECT 'dc_' || $1 || n, $1, 'timer', '{"interval_seconds":60,"cron":null}', now() - $2 * interval '1 second' FROM generate_series(1, $3) AS n`,
    [owner, secondsAgo, count],
  );
}
const requested = async (): Promise<RunRequest[]> =>
  (await fresh.database.query<{ value: Buffer }>('SELECT value FROM outbox ORDER BY id')).rows.map(({ value }) =>
    JSON.parse(String(value)),
  );
const resume = ({ source_id, run_id }: RunRequest) => timers.resume(fresh.database, source_id, run_id);

describe('a due timer', () => {
  it('does not tick while the waiting data of its account has reached its limit, and ticks once for all that it has missed', async () => {
    await set(ALICE, 200);
    await set(BOB, 1);
    full = [ALICE];
    expect(await ticker.handleDue()).toBe(1);
    expect(await ticker.msToNext()).toBeGreaterThan(1000);
    full = [];
    expect(await ticker.msToNext()).toBeLessThan(0);
    expect(await ticker.handleDue()).toBe(1);
    const ticks = await requested();
    expect(ticks.map(({ owner_id }) => owner_id)).toEqual([BOB, ALICE]);
    await resume(ticks[1]!);
    expect(await ticker.handleDue()).toBe(0);
  });

  it('does not wait for 2000 timers of another account that are due before it', async () => {
    await set(ALICE, 3600, 2000);
    await set(BOB, 1);
    expect(await ticker.handleDue()).toBeGreaterThanOrEqual(500);
    const ticks = await requested();
    expect(ticks.length).toBeLessThan(1000);
    expect(ticks.map(({ owner_id }) => owner_id)).toContain(BOB);
  });

  it('ticks although 2000 timers of a full account are due before it', async () => {
    await set(ALICE, 3600, 2000);
    await set(BOB, 1, 2);
    full = [ALICE];
    expect(await ticker.msToNext()).toBeLessThan(0);
    expect(await ticker.handleDue()).toBe(2);
    expect(await ticker.msToNext()).toBeGreaterThan(1000);
    for (const tick of await requested()) await resume(tick);
    expect(await ticker.msToNext()).toBeLessThan(60_000);
    expect(await ticker.handleDue()).toBe(0);
  });

  it('ticks again in its rhythm although the clock of this process is a day ahead', async () => {
    await set(ALICE, 1);
    jest.useFakeTimers({ now: Date.now() + 86_400_000, doNotFake: ['nextTick', 'setImmediate', 'setTimeout', 'performance'] });
    await ticker.handleDue();
    const [tick] = await requested();
    await resume(tick!);
    expect(await ticker.msToNext()).toBeLessThan(60_000);
  });
});

describe('a tick at a time that the timer has lived before', () => {
  const cron: Schedule = { interval_seconds: null, cron: '*/10 * * * * *' };
  const put = (schedules: Record<string, Schedule>, next: (now: Date) => Date) =>
    fresh.database.transaction((transaction) =>
      timers.put(transaction, { source_id: 'dc_u_bob1', owner_id: BOB }, schedules, (_prop, _schedule, now) => next(now)),
    );
  /** Its run, which ends. */
  const tickAt = async (at: Date): Promise<RunRequest> => {
    await fresh.database.query('UPDATE timer SET next_run_at = $1', [at]);
    expect(await ticker.handleDue()).toBe(1);
    const tick = (await requested()).at(-1)!;
    await resume(tick);
    return tick;
  };
  const inADay = () => fresh.database.query("UPDATE timer SET next_run_at = date_trunc('milliseconds', now()) + interval '1 day'");
  const bothTimes = async (between: () => Promise<unknown>): Promise<RunRequest[]> => {
    await set(BOB, 1);
    await put({ timer: cron }, (now) => now);
    const at = new Date(Date.now() - 1000);
    const first = await tickAt(at);
    await between();
    return [first, await tickAt(at)];
  };

  it.each([
    ['its next tick was corrected', async () => void (await inADay(), await ticker.correct())],
    ['its source was switched off and on', async () => void (await put({}, (now) => now), await put({ timer: cron }, (now) => now))],
    ['its schedule was changed', () => put({ timer: { ...cron, cron: '*/5 * * * * *' } }, (now) => now)],
  ])('is another run after %s', async (_, change) => {
    const [first, second] = await bothTimes(change);
    expect(second!.due_at_ms).toBe(first!.due_at_ms);
    expect(second!.run_id).not.toBe(first!.run_id);
  });

  it('is the same run if the database was restored', async () => {
    const [first, second] = await bothTimes(async () => {});
    expect(second!.run_id).toBe(first!.run_id);
  });
});

describe('a timer whose next tick was set while the clock of the database was ahead', () => {
  const timer = async (prop: string, schedule: Schedule, nextIn: string, runId: string | null = null) =>
    fresh.database.query(
      `INSERT INTO timer (source_id, account_id, prop, schedule, next_run_at, run_id)
       VALUES ('dc_u_bob1', 'u_bob', $1, $2, date_trunc('milliseconds', now()) + $3::interval, $4)`,
      [prop, schedule, nextIn, runId],
    );
  const secondsToTicks = async () =>
    Object.fromEntries(
      (
        await fresh.database.query<{ prop: string; seconds: number }>(
          'SELECT prop, extract(epoch FROM next_run_at - now())::float8 AS seconds FROM timer ORDER BY prop',
        )
      ).rows.map(({ prop, seconds }) => [prop, seconds]),
    );
  const every = (seconds: number): Schedule => ({ interval_seconds: seconds, cron: null });
  const cron = (expression: string): Schedule => ({ interval_seconds: null, cron: expression });
  const DAY_S = 86_400;

  it('ticks at its next time, as the clock shows it now', async () => {
    await set(BOB, -60);
    await timer('each minute', every(60), '1 day');
    await timer('each day', every(DAY_S), '10 years');
    await timer('at nine', cron('0 9 * * *'), '10 years');
    await timer('each ten seconds', cron('*/10 * * * * *'), '55 minutes');
    await ticker.correct();
    const seconds = await secondsToTicks();
    expect(seconds['each minute']).toBeLessThan(120);
    expect(seconds['each day']).toBeLessThanOrEqual(DAY_S + 60);
    expect(seconds['at nine']).toBeLessThanOrEqual(DAY_S + 60);
    expect(seconds['each ten seconds']).toBeLessThanOrEqual(71);
    expect(Math.min(...Object.values(seconds))).toBeGreaterThan(0);
    expect(logged).toEqual([[expect.objectContaining({ timers: 4 }), 'timers.corrected']]);
    await ticker.correct();
    expect(logged).toHaveLength(1);
  });

  it('is the only one whose tick changes', async () => {
    await set(BOB, -60);
    await timer('each minute', every(60), '61 seconds');
    await timer('each day', every(DAY_S), '23 hours');
    await timer('in progress', every(60), '1 hour', 'run');
    await timer('ended', every(60), 'infinity');
    const { rows } = await fresh.database.query<{ at: Date }>("SELECT date_trunc('hour', now()) + interval '5 hours' AS at");
    await fresh.database.query(`INSERT INTO timer (source_id, prop, schedule, next_run_at) VALUES ('dc_u_bob1', 'at an hour', $1, $2)`, [
      cron(`0 ${rows[0]!.at.getUTCHours()} * * *`),
      new Date(rows[0]!.at.getTime() + Math.floor(phaseOf('dc_u_bob1', 'at an hour') * 1000)),
    ]);
    const before = (await fresh.database.query('SELECT * FROM timer ORDER BY prop')).rows;
    await ticker.correct();
    expect((await fresh.database.query('SELECT * FROM timer ORDER BY prop')).rows).toEqual(before);
    expect(logged).toEqual([]);
  });
});
