import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import pg from 'pg';
import type { Schedule, SourceId, UserId } from '#contracts';
import { freshDatabase, type FreshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { type DueTimer, tickRunId, TimersRepository } from './timers.repository.js';

let fresh: FreshDatabase;
let timers: TimersRepository;
beforeAll(async () => {
  fresh = await freshDatabase(schema);
  timers = new TimersRepository(fresh.database);
});
afterAll(() => fresh?.drop());
beforeEach(() => fresh.database.query('TRUNCATE deployment, timer CASCADE'));

const inAMinute = () => new Date(Date.now() + 60_000);

/** Timers of this many sources, due this many seconds ago. */
async function set(count: number, secondsAgo = 1): Promise<void> {
  await fresh.database.query(
    `INSERT INTO deployment (source_id, owner_id, active, version, code_hash, configured_props, schedules, name_slug)
     SELECT 'dc_' || n, 'u_1', true, 1, 'h', '{}', '{}', 'n' FROM generate_series(1, $1) AS n`,
    [count],
  );
  await fresh.database.query(
    `INSERT INTO timer (source_id, account_id, prop, schedule, next_run_at)
     SELECT 'dc_' || n, 'u_1', 'timer', '{"interval_seconds":60,"cron":null}', now() - $2 * interval '1 second' FROM generate_series(1, $1) AS n`,
    [count, secondsAgo],
  );
}
const claim = async (next: () => Date | null = inAMinute): Promise<DueTimer[]> => {
  const claimed: DueTimer[] = [];
  await timers.claimDue([], async (_, due) => {
    claimed.push(...due);
    return due.map(next);
  });
  return claimed;
};

/** The prepared statements that this work executes, by their names. */
async function statementsOf(work: () => Promise<void>): Promise<Map<string, { text: string; values: unknown[] }>> {
  const query = jest.spyOn(pg.Client.prototype, 'query');
  await work();
  const { calls } = query.mock;
  query.mockRestore();
  return new Map(
    calls.flatMap(([statement]: unknown[]) => {
      const { name, text, values } = statement as { name?: string; text: string; values: unknown[] };
      return name ? [[name, { text, values }]] : [];
    }),
  );
}

describe('a due timer', () => {
  it('is claimed by one of several replicas', async () => {
    await set(40);
    const claims = await Promise.all(Array.from({ length: 8 }, () => claim()));
    const ids = claims.flat().map(({ source_id }) => source_id);
    expect(new Set(ids).size).toBe(ids.length);
    for (let more = await claim(); more.length > 0; more = await claim()) ids.push(...more.map(({ source_id }) => source_id));
    expect(new Set(ids).size).toBe(40);
    expect(ids).toHaveLength(40);
  });

  it('is claimed again when its replica dies before it has written the tick', async () => {
    await set(1);
    await expect(
      timers.claimDue([], async () => {
        throw new Error('died');
      }),
    ).rejects.toThrow('died');
    expect(await claim()).toHaveLength(1);
  });

  it('does not delay the search for lost requests while its run ends', async () => {
    await set(3);
    const [first] = await claim();
    await fresh.database.transaction(async (transaction) => {
      await timers.resume(transaction, first!.source_id, tickRunId(first!));
      expect(await timers.repeatLost()).toBe(2);
    });
  });

  it('does not tick again until its run has ended; missed ticks count as one', async () => {
    await set(1);
    const [first] = await claim(() => new Date(Date.now() - 1));
    expect(await claim()).toEqual([]);
    await timers.resume(fresh.database, first!.source_id, 'another run');
    expect(await claim()).toEqual([]);
    await timers.resume(fresh.database, first!.source_id, tickRunId(first!));
    expect(await claim()).toHaveLength(1);
    expect(await claim()).toEqual([]);
  });

  it.each([
    ['within an hour', () => fresh.database.query("UPDATE timer SET next_run_at = next_run_at - interval '61 minutes'")],
    ['when Kafka has lost requests', () => timers.repeatLost()],
  ])('requests the same run again if it has not ended %s', async (_, pass) => {
    await set(1);
    const next = new Date(Date.now() + 30_000);
    const [first] = await claim(() => next);
    await pass();
    const [second] = await claim(() => next);
    expect(tickRunId(second!)).toBe(tickRunId(first!));
    await timers.resume(fresh.database, first!.source_id, tickRunId(first!));
    await pass();
    const { rows } = await fresh.database.query<{ next_run_at: Date }>('SELECT next_run_at FROM timer WHERE run_id IS NULL');
    expect(rows).toHaveLength(1);
  });

  it('does not request a run again that may be in progress in another replica, until that must have ended', async () => {
    await set(2);
    const [first] = await claim();
    await fresh.database.query("UPDATE timer SET next_run_at = next_run_at - interval '2 minutes' WHERE source_id = $1", [
      first!.source_id,
    ]);
    for (let start = 0; start < 3; start++) await timers.repeatLost(60);
    expect((await claim()).map(tickRunId)).toEqual([tickRunId(first!)]);
    await fresh.database.query("UPDATE timer SET next_run_at = next_run_at - interval '61 seconds'");
    expect(await claim()).toHaveLength(1);
  });

  it('requests a lost run again that it has requested while the clock of the database was a day ahead', async () => {
    await set(1);
    const [first] = await claim();
    await fresh.database.query("UPDATE timer SET next_run_at = next_run_at + interval '1 day'");
    expect(await timers.repeatLost(60)).toBe(1);
    expect(await timers.msToNext()).toBeLessThanOrEqual(60_000);
    await timers.repeatLost();
    expect((await claim()).map(tickRunId)).toEqual([tickRunId(first!)]);
  });

  it('whose cron expression never comes again requests its last run again', async () => {
    await set(1);
    const [first] = await claim(() => null);
    await timers.repeatLost();
    const [second] = await claim(() => null);
    expect(tickRunId(second!)).toBe(tickRunId(first!));
  });

  it('whose run waits in the database does not request it again when Kafka has lost requests', async () => {
    await set(1);
    const [first] = await claim();
    await fresh.database.query(
      "INSERT INTO queued_run (run_id, account_id, source_id, hook, request) VALUES ($1, 'u_1', 'dc_1', false, '{}')",
      [tickRunId(first!)],
    );
    expect(await timers.repeatLost()).toBe(0);
    expect(await claim()).toEqual([]);
    await fresh.database.query('TRUNCATE queued_run');
  });

  it('has runs whose ids fit into headers and cursors, whatever its name is', () => {
    const at = new Date(1_700_000_000_000);
    const idOf = (prop: string) =>
      tickRunId({ source_id: 'dc_1', prop, next_run_at: at, set_at: new Date(1_600_000_000_000), run_id: null });
    expect(idOf('timer_1')).toBe('dc_1.timer_1.kf12ot8g.1700000000000');
    for (const prop of ['über timer', 'x'.repeat(256), 'a\nb']) expect(idOf(prop)).toMatch(/^dc_1\.[\w-]{43}\.\w{8}\.1700000000000$/);
    expect(idOf('ein timer')).not.toBe(idOf('ein timer '));
  });

  it('has runs with the same ids in an older version, until it is set again', async () => {
    await set(1);
    const [first] = await claim();
    expect(tickRunId(first!)).toBe(`dc_1.timer.${first!.next_run_at.getTime()}`);
  });

  it('requests the run again under the id that an older version has given it', async () => {
    await set(1);
    await fresh.database.query('UPDATE timer SET set_at = now(), run_id = $1', ['dc_1.timer.1700000000000']);
    const [again] = await claim();
    expect(tickRunId(again!)).toBe('dc_1.timer.1700000000000');
    expect(again!.next_run_at.getTime()).toBe(1_700_000_000_000);
  });

  it('whose cron expression never comes again stays silent', async () => {
    await set(1);
    const [first] = await claim(() => null);
    await timers.resume(fresh.database, first!.source_id, tickRunId(first!));
    expect(await claim()).toEqual([]);
    expect(await timers.msToNext()).toBeNull();
  });

  it('is found by an index among many, also while an account is full', async () => {
    await set(20_000, -600);
    await fresh.database.query(
      `UPDATE timer SET account_id = 'u_full', next_run_at = now() - interval '1 hour' WHERE substr(source_id, 4)::int <= 600`,
    );
    await fresh.database.query(`UPDATE timer SET next_run_at = now() WHERE substr(source_id, 4)::int BETWEEN 601 AND 1200`);
    await fresh.database.query('ANALYZE timer');
    const statements = await statementsOf(async () => {
      for (const without of [[], ['u_full']] as UserId[][]) {
        await timers.msToNext(without);
        await timers.claimDue(without, async (_, due) => due.map(inAMinute));
      }
    });
    const indexes: Record<string, string[]> = {};
    for (const [name, { text, values }] of statements) {
      const { rows } = await fresh.database.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${text}`, values);
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      expect(plan).not.toContain('Seq Scan on timer');
      indexes[name] = [...new Set([...plan.matchAll(/using (timer_\w+)/g)].map(([, index]) => index!))];
    }
    expect(indexes).toEqual({
      'timers-first': ['timer_due'],
      'timers-first-of-others': ['timer_due'],
      'timers-oldest': ['timer_due'],
      'timers-oldest-of-others': ['timer_due'],
      'timers-turns': ['timer_turn'],
      'timers-due': [expect.any(String)],
      'timers-next': ['timer_pkey'],
    });
  });

  it('gets its account with its next tick if an older version has set it', async () => {
    await set(1);
    await fresh.database.query('UPDATE timer SET account_id = NULL');
    expect(await timers.msToNext(['u_2'])).toBeLessThan(0);
    expect(await claim()).toHaveLength(1);
    expect((await fresh.database.query('SELECT account_id FROM timer')).rows).toEqual([{ account_id: 'u_1' }]);
  });

  it('is not looked at again and again if an older version has set it and its account is full', async () => {
    await set(600);
    await fresh.database.query('UPDATE timer SET account_id = NULL');
    const full = ['u_1'] as UserId[];
    expect(await timers.claimDue(full, async () => [])).toBe(0);
    expect(await timers.msToNext(full)).toBeNull();
    expect((await claim()).length).toBeGreaterThanOrEqual(500);
  });
});

it('a timer whose schedule changes while its tick is corrected keeps the new tick', async () => {
  await set(1, -86_400);
  await fresh.database.query("UPDATE timer SET next_run_at = date_trunc('milliseconds', next_run_at)");
  const [late] = await timers.distant({ source_id: '' as SourceId, prop: '' }, 1);
  const changed = new Date(Date.now() + 7_200_000);
  await fresh.database.transaction((transaction) =>
    timers.put(transaction, { source_id: 'dc_1', owner_id: 'u_1' }, { timer: { interval_seconds: 7200, cron: null } }, () => changed),
  );
  expect(await timers.bringForward([{ ...late!, at: inAMinute() }])).toBe(0);
  expect((await fresh.database.query('SELECT next_run_at FROM timer')).rows).toEqual([{ next_run_at: changed }]);
});

it('only the first ticks of new and changed timers are computed when the timers of a source are set', async () => {
  await set(1);
  const every = (seconds: number) => ({ interval_seconds: seconds, cron: null });
  const computed: string[] = [];
  const put = (schedules: Record<string, Schedule>) =>
    fresh.database.transaction((transaction) =>
      timers.put(transaction, { source_id: 'dc_1', owner_id: 'u_1' }, schedules, (prop, _, now) => {
        computed.push(prop);
        return now;
      }),
    );
  const { rows: before } = await fresh.database.query('SELECT * FROM timer');
  await put({ timer: { cron: null, interval_seconds: 60 }, other: every(60) });
  await put({ timer: every(60), other: every(61) });
  await put({ timer: every(60) });
  expect(computed).toEqual(['other', 'other']);
  expect((await fresh.database.query('SELECT * FROM timer')).rows).toEqual(before);
});
