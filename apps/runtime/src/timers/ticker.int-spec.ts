import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { FullAccount, RunRequest, UserId } from '#contracts';
import { createLog } from '#observability';
import { freshDatabase, type FreshDatabase } from '#testing';
import type { WaitingData } from '#waiting-data';
import { schema } from '../database/schema.js';
import { Ticker } from './ticker.js';
import { TimersRepository } from './timers.repository.js';

const [ALICE, BOB] = ['u_alice', 'u_bob'] as UserId[] as [UserId, UserId];

let fresh: FreshDatabase;
let timers: TimersRepository;
let ticker: Ticker;
let full: UserId[];
beforeAll(async () => {
  fresh = await freshDatabase(schema);
  timers = new TimersRepository(fresh.database);
  const own = { list: () => full.map((owner_id): FullAccount => ({ owner_id, reason: 'full' })) } as WaitingData;
  ticker = new Ticker(timers, own, createLog('test', 'silent'));
});
afterAll(() => fresh?.drop());
beforeEach(async () => {
  await fresh.database.query('TRUNCATE deployment, timer, outbox CASCADE');
  full = [];
});

afterEach(() => void jest.useRealTimers());

/** A timer of this account that ticks each minute and has been due for this many seconds. */
async function set(owner: UserId, secondsAgo: number): Promise<void> {
  await fresh.database.query(
    `INSERT INTO deployment (source_id, owner_id, active, version, code_hash, configured_props, schedules, name_slug)
     VALUES ('dc_' || $1, $1, true, 1, 'h', '{}', '{}', 'n')`,
    [owner],
  );
  await fresh.database.query(
    `INSERT INTO timer (source_id, prop, schedule, next_run_at)
     VALUES ('dc_' || $1, 'timer', '{"interval_seconds":60,"cron":null}', now() - $2 * interval '1 second')`,
    [owner, secondsAgo],
  );
}
const requested = async (): Promise<RunRequest[]> =>
  (await fresh.database.query<{ value: Buffer }>('SELECT value FROM outbox ORDER BY id')).rows.map(({ value }) =>
    JSON.parse(String(value)),
  );
const resume = (owner: UserId, { run_id }: RunRequest) => timers.resume(fresh.database, `dc_${owner}`, run_id);

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
    await resume(ALICE, ticks[1]!);
    expect(await ticker.handleDue()).toBe(0);
  });

  it('ticks again in its rhythm although the clock of this process is a day ahead', async () => {
    await set(ALICE, 1);
    jest.useFakeTimers({ now: Date.now() + 86_400_000, doNotFake: ['nextTick', 'setImmediate', 'setTimeout', 'performance'] });
    await ticker.handleDue();
    const [tick] = await requested();
    await resume(ALICE, tick!);
    expect(await ticker.msToNext()).toBeLessThan(60_000);
  });
});
