import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { newId, type UserId } from '#contracts';
import { type FreshDatabase, freshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { ReplayRow, ReplaysRepository } from './replays.repository.js';

let db: FreshDatabase;
let replays: ReplaysRepository;
beforeAll(async () => {
  db = await freshDatabase(schema);
  replays = new ReplaysRepository(db.database, db.database.rows(ReplayRow));
});
afterAll(() => db?.drop());

const add = async (owner: UserId) => {
  const id = newId('replay');
  await replays.add({
    ...{ id, owner_id: owner, emitter_id: newId('source'), stream: '', listener_id: newId('webhook') },
    ...{ from_id: '0-0', to_id: '1-0', events: 1 },
  });
  return id;
};

it('replays take turns, the one that waits longest first', async () => {
  const ids = [await add(newId('user')), await add(newId('user')), await add(newId('user'))];
  const turns: string[] = [];
  for (let n = 0; n < 6; n++) {
    const row = (await replays.claim())!;
    turns.push(row.id);
    await replays.save(row, { release: true });
  }
  expect(turns.slice(0, 3).sort()).toEqual(ids.sort());
  expect(turns.slice(3)).toEqual(turns.slice(0, 3));
});

it('keeps its progress when a replica that has lost the lease stores an older one', async () => {
  await db.database.query('TRUNCATE replay');
  const owner = newId('user');
  const id = await add(owner);
  const frozen = (await replays.claim())!;
  expect(await replays.save(frozen)).toBe(true);
  await db.database.query("UPDATE replay SET leased_until = now() - interval '1 s'");
  const next = (await replays.claim())!;
  expect(await replays.save(Object.assign(next, { offsets: { 0: 5 } }))).toBe(true);
  expect(await replays.save(frozen)).toBe(false);
  expect(await replays.save(frozen, { release: true })).toBe(false);
  expect((await replays.find(owner, id))?.offsets).toEqual({ 0: 5 });
  expect(await replays.save(next, { release: true })).toBe(true);
});

it('counts the replays of an account that have not ended', async () => {
  const [owner, other] = [newId('user'), newId('user')];
  const id = await add(owner);
  await Promise.all([add(owner), add(other)]);
  expect(await replays.countRunning(owner)).toBe(2);
  await replays.cancel(owner, id);
  expect(await replays.countRunning(owner)).toBe(1);
});
