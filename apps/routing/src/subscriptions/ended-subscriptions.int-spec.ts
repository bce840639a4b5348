import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { newId, type SourceId, type UserId } from '#contracts';
import { RoutingFixture } from '../routing-fixture-for-tests.js';

let routing: RoutingFixture;
let owner: UserId;
beforeAll(async () => {
  routing = await RoutingFixture.open();
});
afterAll(() => routing.close());
beforeEach(async () => {
  owner = newId('user');
  await routing.database.query('TRUNCATE subscription, ended_emitter, ended_subscription');
});

/** A deleted source that had this number of subscriptions. @param minutes since its deletion */
async function ended(subscriptions: number, minutes: number, ownerId = owner): Promise<SourceId> {
  const source = await routing.source(ownerId);
  const streams = Array.from({ length: subscriptions }, (_, n) => ({ listener_id: newId('webhook'), event_name: String(n) }));
  await routing.database.transaction((transaction) => routing.subscriptions.add(transaction, ownerId, source, streams));
  await routing.directory.learn(routing.state(ownerId, source, { deleted: true, version: 2 }));
  await routing.database.query('UPDATE ended_emitter SET ended_at = now() - make_interval(mins => $2) WHERE emitter_id = $1', [
    source,
    minutes,
  ]);
  return source;
}

/** The emitters that have subscriptions, and those that have ended. */
async function left(): Promise<{ subscribed: string[]; ended: string[] }> {
  const idsOf = async (table: string) => {
    const { rows } = await routing.database.query<{ id: string }>(`SELECT DISTINCT emitter_id AS id FROM ${table} ORDER BY 1`);
    return rows.map(({ id }) => id);
  };
  return { subscribed: await idsOf('subscription'), ended: await idsOf('ended_emitter') };
}

/** Subscriptions that were deleted, a millisecond after each other. @param minutes since the last of them */
async function unsubscribed(count: number, minutes: number, ownerId = owner): Promise<SourceId> {
  const source = newId('source');
  await routing.database.query(
    `INSERT INTO ended_subscription (owner_id, emitter_id, stream, listener_id, ended_at_ms)
     SELECT $1, $2, n::text, 'wh_x', $3::bigint - n FROM generate_series(0, $4::int - 1) n`,
    [ownerId, source, Date.now() - minutes * 60_000, count],
  );
  return source;
}

/** How many subscriptions to each emitter were deleted and are kept. */
async function kept(): Promise<Record<string, number>> {
  const { rows } = await routing.database.query<{ id: string; count: number }>(
    'SELECT emitter_id AS id, count(*) AS count FROM ended_subscription GROUP BY 1',
  );
  return Object.fromEntries(rows.map(({ id, count }) => [id, count]));
}

const MINUTES_OF_DAY = 24 * 60;
const LIMITS = { days: 8, most: 10, minutes: 15 };

describe('deleting the subscriptions to deleted emitters', () => {
  it('deletes them after some days, in steps', async () => {
    const [recent] = [await ended(3, 7 * MINUTES_OF_DAY), await ended(3, 8 * MINUTES_OF_DAY + 1), await ended(11_000, 9 * MINUTES_OF_DAY)];
    await routing.subscriptions.deleteEnded({ ...LIMITS, most: 20_000 });
    expect(await left()).toEqual({ subscribed: [recent], ended: [recent] });
  });

  it('does not wait for that of an emitter that only listened to itself', async () => {
    const source = await routing.source(owner);
    await routing.service.create({ owner_id: owner, emitter_id: source, listener_id: source, event_name: 'a' });
    await routing.directory.learn(routing.state(owner, source, { deleted: true, version: 2 }));
    expect(await left()).toEqual({ subscribed: [], ended: [] });
  });

  it('deletes the oldest ones of an account that has too many, but none that ended a moment ago', async () => {
    const other = await ended(10, 90, newId('user'));
    const kept = [await ended(20, 0), await ended(0, 20), await ended(20, 14)];
    await ended(20, 16);
    await ended(1, 30);
    await routing.subscriptions.deleteEnded(LIMITS);
    const expected = [other, kept[0], kept[2]].sort();
    expect(await left()).toEqual({ subscribed: expected, ended: expected });
  });

  it('keeps those of an emitter that exists again', async () => {
    const source = await ended(3, 9 * MINUTES_OF_DAY);
    await routing.directory.learn(routing.state(owner, source, { version: 3, created_at_ms: 1 }));
    await routing.subscriptions.deleteEnded(LIMITS);
    expect(await left()).toEqual({ subscribed: [source], ended: [] });
  });

  it('leaves nothing of an account that is deleted', async () => {
    await ended(10_001, 0);
    expect(await routing.subscriptions.deleteAll(owner)).toBe(10_001);
    expect(await left()).toEqual({ subscribed: [], ended: [] });
  });
});

describe('removing subscriptions that were deleted', () => {
  it('removes them after some days, in steps', async () => {
    const recent = await unsubscribed(3, 8 * MINUTES_OF_DAY - 1);
    await unsubscribed(3, 8 * MINUTES_OF_DAY);
    await unsubscribed(11_000, 9 * MINUTES_OF_DAY);
    await routing.subscriptions.deleteEnded({ ...LIMITS, most: 20_000 });
    expect(await kept()).toEqual({ [recent]: 3 });
  });

  it('removes the oldest ones of an account that has too many, but none that was deleted a moment ago', async () => {
    const other = await unsubscribed(10, 90, newId('user'));
    const [now, earlier] = [await unsubscribed(6, 0), await unsubscribed(6, 20)];
    await unsubscribed(3, 30);
    await routing.subscriptions.deleteEnded(LIMITS);
    expect(await kept()).toEqual({ [other]: 10, [now]: 6, [earlier]: 4 });
    const many = await unsubscribed(20, 14);
    await routing.subscriptions.deleteEnded(LIMITS);
    expect(await kept()).toEqual({ [other]: 10, [now]: 6, [many]: 20 });
  });

  it('leaves nothing of an account that is deleted', async () => {
    const other = await unsubscribed(1, 0, newId('user'));
    await unsubscribed(10_001, 0);
    expect(await routing.subscriptions.deleteAll(owner)).toBe(0);
    expect(await kept()).toEqual({ [other]: 1 });
  });

  it('leaves those that another replica removes at the same time to it', async () => {
    await unsubscribed(3, 9 * MINUTES_OF_DAY);
    await routing.database.transaction(async (transaction) => {
      await transaction.query('DELETE FROM ended_subscription');
      await routing.subscriptions.deleteEnded(LIMITS);
    });
    expect(await kept()).toEqual({});
  });
});
