import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { findWithdrawnEmits, type SourceId, Unavailable, type WaitingEmitKey } from '#contracts';
import type { Messages } from '#messaging';
import { createLog } from '#observability';
import { freshDatabase, type FreshDatabase } from '#testing';
import type { WaitingData } from '#waiting-data';
import { schema } from '../database/schema.js';
import { Releaser } from './releaser.js';
import { WaitingEmitsRepository } from './waiting-emits.repository.js';
import { WithdrawnEmits } from './withdrawn-emits.js';
import { WithdrawnSweep } from './withdrawn-sweep.js';

const SOURCE: SourceId = 'dc_1';

/** The part of the event store that the releaser uses. */
class FakeEventStore {
  withdrawn: string[] = [];
  isAway = false;
  /** A source for which it takes too long. */
  slow: SourceId | undefined;
  asked: WaitingEmitKey[] = [];
  /** Awaited before the response. */
  meanwhile: () => Promise<unknown> = async () => {};

  async request(contract: unknown, { emits }: { emits: WaitingEmitKey[] }): Promise<WaitingEmitKey[]> {
    expect(contract).toBe(findWithdrawnEmits);
    if (this.isAway) throw new Unavailable('the event store is down');
    if (emits.some(({ emitter_id }) => emitter_id === this.slow)) throw new Unavailable('the event store has not replied in time');
    this.asked.push(...emits);
    await this.meanwhile();
    return emits.filter(({ emit_id }) => this.withdrawn.includes(emit_id));
  }
}

describe('emits that wait', () => {
  let fresh: FreshDatabase;
  let store: FakeEventStore;
  beforeAll(async () => {
    fresh = await freshDatabase(schema);
  });
  afterAll(() => fresh?.drop());
  beforeEach(async () => {
    await fresh.database.query('TRUNCATE waiting_emit, outbox RESTART IDENTITY');
    store = new FakeEventStore();
  });

  const replica = () =>
    new Releaser(new WaitingEmitsRepository(fresh.database), new WithdrawnEmits(store as unknown as Messages), createLog('test', 'silent'));
  /** Emits that become due one after the other, the last of them in this many seconds. */
  const wait = (emitIds: string[], lastInSeconds = -1) =>
    fresh.database.query(
      `INSERT INTO waiting_emit (emit_id, source_id, account_id, due_at, headers, value)
       SELECT id, $1, 'u_1', now() + ($3 - (cardinality($2::text[]) - n)) * interval '1 second', jsonb_build_object('ce_id', id), convert_to(id, 'UTF8')
       FROM unnest($2::text[]) WITH ORDINALITY AS emit (id, n)`,
      [SOURCE, emitIds, lastInSeconds],
    );
  const emitted = async () =>
    (
      await fresh.database.query<{ value: Buffer }>("SELECT value FROM outbox WHERE topic = 'events' AND key = 'dc_1' ORDER BY id")
    ).rows.map(({ value }) => value.toString());
  const left = async () =>
    (await fresh.database.query<{ emit_id: string }>('SELECT emit_id FROM waiting_emit ORDER BY due_at')).rows.map(
      ({ emit_id }) => emit_id,
    );

  it('are emitted when they are due, in the order in which they are', async () => {
    await wait(['c', 'a', 'b']);
    await wait(['later'], 60);
    expect(await replica().handleDue()).toBe(3);
    expect([await emitted(), await left()]).toEqual([['c', 'a', 'b'], ['later']]);
    expect(store.asked).toEqual(['c', 'a', 'b'].map((emit_id) => ({ emitter_id: SOURCE, emit_id, since_ms: expect.any(Number) })));
    const { rows } = await fresh.database.query('SELECT headers FROM outbox ORDER BY id LIMIT 1');
    expect(rows).toEqual([{ headers: { ce_id: 'c' } }]);
  });

  it('emits of a run that are due at the same time keep the order of their calls, however many there are', async () => {
    const due_at_ms = Date.now() - 1000;
    const ids = Array.from({ length: 1000 }, (_, n) => `${(n * 7919) % 1000}`);
    const emits = ids.map((emit_id) => ({ emit_id, due_at_ms, record: { key: SOURCE, headers: {}, value: Buffer.from(emit_id) } }));
    const repository = new WaitingEmitsRepository(fresh.database);
    await fresh.database.transaction((transaction) => repository.add(transaction, { source_id: SOURCE, owner_id: 'u_1' }, emits));
    while ((await left()).length > 0) await replica().handleDue();
    expect(await emitted()).toEqual(ids);
  });

  it('emits of a run keep their order if several replicas release them at the same time', async () => {
    const repository = new WaitingEmitsRepository(fresh.database);
    const expected: string[] = [];
    for (let round = 0; round < 40; round++) {
      const emitIds = Array.from({ length: 200 }, (_, n) => `${round}-${n}`);
      expected.push(...emitIds);
      await wait(emitIds);
      const keys = await repository.due();
      await Promise.all([keys, keys.toReversed(), keys].map((emits) => repository.release(emits, [])));
    }
    expect(await emitted()).toEqual(expected);
  });

  it('are deleted before they are due if they are withdrawn and their account is full, in parts', async () => {
    const emitIds = Array.from({ length: 12_000 }, (_, n) => `e${n}`);
    await wait(emitIds, 100_000);
    store.withdrawn = emitIds.filter((_, n) => n % 2 === 0);
    const full = { list: () => [{ owner_id: 'u_1', reason: '' }] } as unknown as WaitingData;
    const withdrawn = new WithdrawnEmits(store as unknown as Messages);
    const sweep = new WithdrawnSweep(full, new WaitingEmitsRepository(fresh.database), withdrawn, createLog('test', 'silent'));
    await sweep.sweep();
    expect(await left()).toHaveLength(7000);
    store.isAway = true;
    await sweep.sweep();
    store.isAway = false;
    await sweep.sweep();
    expect(await left()).toEqual(emitIds.filter((_, n) => n % 2 === 1));
  });

  it('emits of an account with few of them are among the first, although 10 000 of another one are due before them', async () => {
    await wait(Array.from({ length: 10_000 }, (_, n) => `e${n}`));
    await fresh.database.query(
      `INSERT INTO waiting_emit (emit_id, source_id, account_id, due_at, headers, value) VALUES ('other', 'dc_2', 'u_2', now() - interval '1 s', '{}', 'x')`,
    );
    await replica().handleDue();
    const { rows } = await fresh.database.query("SELECT FROM outbox WHERE key = 'dc_2' AND account_id = 'u_2'");
    expect(rows).toHaveLength(1);
    expect(await emitted()).toEqual(Array.from({ length: 500 }, (_, n) => `e${n}`));
  });

  it.each([
    ['values', "value = convert_to(repeat('x', 900000), 'UTF8')"],
    ['headers', "headers = jsonb_build_object('ce_summary', repeat('x', 900000))"],
  ])('are few at a time if their %s are large', async (_, large) => {
    await wait(['a', 'b', 'c']);
    await fresh.database.query(`UPDATE waiting_emit SET ${large}`);
    expect([await replica().handleDue(), await replica().handleDue()]).toEqual([2, 1]);
    expect(await left()).toEqual([]);
  });

  it('are dropped when they were withdrawn', async () => {
    await wait(['a', 'b', 'c']);
    store.withdrawn = ['b', 'unknown'];
    await replica().handleDue();
    expect([await emitted(), await left()]).toEqual([['a', 'c'], []]);
  });

  it('cause no request while none is due', async () => {
    await wait(['later'], 60);
    expect(await replica().handleDue()).toBe(0);
    expect([store.asked, await left()]).toEqual([[], ['later']]);
  });

  it('keep waiting while the event store does not reply', async () => {
    await wait(['a', 'b']);
    store.isAway = true;
    await expect(replica().handleDue()).rejects.toThrow(Unavailable);
    expect([await emitted(), await left()]).toEqual([[], ['a', 'b']]);
    store.isAway = false;
    await replica().handleDue();
    expect([await emitted(), await left()]).toEqual([['a', 'b'], []]);
  });

  it('are emitted although the event store takes too long for those of another source', async () => {
    await wait(['a', 'b']);
    await fresh.database.query("UPDATE waiting_emit SET source_id = 'dc_slow' WHERE emit_id = 'b'");
    store.slow = 'dc_slow';
    const releaser = replica();
    for (let tries = 0; tries < 2; tries++) await expect(releaser.handleDue()).rejects.toThrow(Unavailable);
    expect([await emitted(), await left()]).toEqual([['a'], ['b']]);
    store.slow = undefined;
    expect([await releaser.handleDue(), await left()]).toEqual([1, []]);
  });

  it('are deleted in a full account although the event store takes too long for those of another account', async () => {
    await wait(['a', 'b'], 100_000);
    await fresh.database.query("UPDATE waiting_emit SET source_id = 'dc_slow', account_id = 'u_slow' WHERE emit_id = 'b'");
    [store.slow, store.withdrawn] = ['dc_slow', ['a']];
    const full = { list: () => ['u_slow', 'u_1'].map((owner_id) => ({ owner_id, reason: '' })) } as unknown as WaitingData;
    const withdrawn = new WithdrawnEmits(store as unknown as Messages);
    await new WithdrawnSweep(full, new WaitingEmitsRepository(fresh.database), withdrawn, createLog('test', 'silent')).sweep();
    expect(await left()).toEqual(['b']);
  });

  it('are emitted once by several replicas', async () => {
    const emitIds = Array.from({ length: 300 }, (_, n) => `e${String(n).padStart(3, '0')}`);
    await wait(emitIds);
    store.withdrawn = ['e007'];
    await Promise.all(Array.from({ length: 5 }, () => replica().handleDue()));
    expect((await emitted()).sort()).toEqual(emitIds.filter((id) => id !== 'e007'));
    expect(await left()).toEqual([]);
  });

  it('emits of a source that is deleted during the request to the event store are deleted with it', async () => {
    await wait(['a']);
    store.meanwhile = () => fresh.database.query('DELETE FROM waiting_emit WHERE source_id = $1', [SOURCE]);
    await replica().handleDue();
    expect(await emitted()).toEqual([]);
  });
});
