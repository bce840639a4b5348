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
  await routing.database.query('TRUNCATE subscription, ended_emitter');
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

const MINUTES_OF_DAY = 24 * 60;
const LIMITS = { days: 8, most: 10, minutes: 15 };

describe('deleting the subscriptions to deleted emitters', () => {
  it('deletes them after some days, in steps', async () => {
    const [recent] = [await ended(3, 7 * MINUTES_OF_DAY), await ended(3, 8 * MINUTES_OF_DAY + 1), await ended(11_000, 9 * MINUTES_OF_DAY)];
    await routing.subscriptions.deleteEnded({ ...LIMITS, most: 20_000 });
    expect(await left()).toEqual({ subscribed: [recent], ended: [recent] });
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
