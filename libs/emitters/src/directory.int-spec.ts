import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type EmitterId,
  type EmitterState,
  type FindEmitters,
  findEmitters,
  findNewEmitters,
  isId,
  SluiceError,
  type SourceId,
  Unavailable,
} from '#contracts';
import { schemaOf, type Transaction } from '#database';
import type { Messages } from '#messaging';
import { FakeMessages, type FreshDatabase, freshDatabase } from '#testing';
import { type EmitterChange, EmitterChangeHandler, EmitterDirectory } from './directory.js';
import { emittersSchema } from './emitter.entity.js';

let db: FreshDatabase;
let directory: EmitterDirectory;
let messages: FakeMessages;
/** The states that the catalog has. */
let catalog: EmitterState[];
/** The changes that the app has handled, and whether the emitter was new. */
let handled: [id: EmitterId, version: number, first: boolean][];
let fails: (id: EmitterId) => Error | undefined;
/** Resolves when the handler may end. */
let mayEnd: Promise<void> | undefined;
/** The emitters that the handler has begun to end. */
let ending: EmitterId[];

class Handler extends EmitterChangeHandler {
  override needsConfigured = true;

  async emittersChanged(_: Transaction, changes: EmitterChange[]): Promise<void> {
    for (const { state, first } of changes) {
      const error = fails(state.emitter_id);
      if (error) throw error;
      if (state.deleted) {
        ending.push(state.emitter_id);
        await mayEnd;
      }
      handled.push([state.emitter_id, state.version, first]);
    }
  }
}

beforeAll(async () => {
  db = await freshDatabase(schemaOf('emitters', emittersSchema));
});
afterAll(() => db.drop());
beforeEach(async () => {
  await db.database.query('TRUNCATE emitter');
  handled = [];
  fails = () => undefined;
  mayEnd = undefined;
  ending = [];
  catalog = [];
  messages = new FakeMessages().replyTo(findEmitters, ({ ids }) => catalog.filter(({ emitter_id }) => ids.includes(emitter_id)));
  directory = new EmitterDirectory(db.database, messages as unknown as Messages, new Handler());
});

const state = (emitter_id: EmitterId, version = 1): EmitterState => ({
  ...{ emitter_id, version, kind: 'source', owner_id: 'u_1', active: true, deleted: false, name: 'n', created_at_ms: 5 },
});
const stored = async () => {
  const { rows } = await db.database.query<{ id: string; version: number }>('SELECT id, version FROM emitter ORDER BY id');
  return rows.map(({ id, version }) => [id, version]);
};
const transactions = async () =>
  (await db.database.query<{ count: number }>('SELECT count(DISTINCT xmin::text)::int AS count FROM emitter')).rows[0]?.count;
/** Another transaction that has run the statement. Returns a function that commits it. */
async function beginning(statement: string): Promise<() => Promise<void>> {
  const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const committed = db.database.transaction(async (transaction) => {
    await transaction.query(statement);
    begun.resolve();
    await released.promise;
  });
  await begun.promise;
  return () => (released.resolve(), committed);
}

describe('the directory of emitters', () => {
  it('stores new emitters that come at the same time in one transaction', async () => {
    expect(await Promise.all([directory.learn(state('dc_2')), directory.learn(state('dc_1'))])).toEqual([true, true]);
    expect([await stored(), await transactions()]).toEqual([
      [
        ['dc_1', 1],
        ['dc_2', 1],
      ],
      1,
    ]);
    expect(handled).toEqual([
      ['dc_1', 1, true],
      ['dc_2', 1, true],
    ]);
  });

  it('handles a state once, and only if it is newer than the stored one', async () => {
    expect(await Promise.all([directory.learn(state('dc_1', 3)), directory.learn(state('dc_1', 3))])).toEqual([true, false]);
    for (const [version, isNewer] of [
      [2, false],
      [3, false],
      [4, true],
    ] as const)
      expect(await directory.learn(state('dc_1', version))).toBe(isNewer);
    expect(handled).toEqual([
      ['dc_1', 3, true],
      ['dc_1', 4, false],
    ]);
  });

  it('stores the newest of several states of an emitter that come at the same time, in the order in which they came', async () => {
    const learnt = [1, 3, 2, 3, 4].map((version) => directory.learn(state('dc_1', version)));
    expect(await Promise.all(learnt)).toEqual([true, true, false, false, true]);
    expect(handled).toEqual([
      ['dc_1', 1, true],
      ['dc_1', 3, false],
      ['dc_1', 4, false],
    ]);
    expect(await stored()).toEqual([['dc_1', 4]]);
  });

  describe('of an app that only needs to know whether an emitter is active', () => {
    const versions = (version: number) => ['dc_1', 'dc_2', 'dc_3'].map((id) => state(id as EmitterId, version));
    beforeEach(async () => {
      const handler = new Handler();
      handler.needsConfigured = false;
      directory = new EmitterDirectory(db.database, messages as unknown as Messages, handler);
      for (const each of versions(1)) await directory.learn(each);
      handled = [];
    });

    it('stores versions with another configuration in one statement, without the handler', async () => {
      expect(await Promise.all(versions(2).map((each) => directory.learn(each)))).toEqual([true, true, true]);
      expect([await stored(), await transactions(), handled]).toEqual([
        [
          ['dc_1', 2],
          ['dc_2', 2],
          ['dc_3', 2],
        ],
        1,
        [],
      ]);
    });

    it('handles what switches an emitter on or off, ends it, or creates it again', async () => {
      await directory.learn({ ...state('dc_1', 2), active: false });
      await directory.learn(state('dc_1', 3));
      await directory.learn({ ...state('dc_2', 2), created_at_ms: 6 });
      await directory.learn({ ...state('dc_3', 2), active: false, deleted: true });
      await directory.learn(state('dc_3', 3));
      expect(handled.map(([id, version]) => [id, version])).toEqual([
        ['dc_1', 2],
        ['dc_1', 3],
        ['dc_2', 2],
        ['dc_3', 2],
        ['dc_3', 3],
      ]);
    });

    it('waits only for the emitter that another transaction has locked', async () => {
      const release = await beginning("UPDATE emitter SET version = 3 WHERE id = 'dc_2'");
      const [first, second, third] = versions(2).map((each) => directory.learn(each));
      expect(await Promise.all([first, third])).toEqual([true, true]);
      await release();
      expect(await second).toBe(false);
      expect(await stored()).toEqual([
        ['dc_1', 2],
        ['dc_2', 3],
        ['dc_3', 2],
      ]);
    });
  });

  it('stores other configurations of known emitters in one transaction, with the handler', async () => {
    await Promise.all(['dc_1', 'dc_2'].map((id) => directory.learn(state(id as EmitterId))));
    handled = [];
    const learnt = [state('dc_2', 2), state('dc_1', 2)].map((each) => directory.learn(each));
    expect([await Promise.all(learnt), await transactions(), handled]).toEqual([
      [true, true],
      1,
      [
        ['dc_1', 2, false],
        ['dc_2', 2, false],
      ],
    ]);
  });

  it('stores the configurations that it can while the app cannot handle one of them, and one emitter is locked', async () => {
    const ids: EmitterId[] = ['dc_1', 'dc_2', 'dc_3', 'dc_4'];
    for (const id of ids) await directory.learn(state(id));
    fails = (id) => (id === 'dc_2' ? new Error('broken') : undefined);
    const release = await beginning("SELECT FROM emitter WHERE id = 'dc_3' FOR UPDATE");
    const [first, broken, third, fourth] = ids.map((id) => directory.learn(state(id, 2)));
    expect(await Promise.allSettled([first, broken, fourth])).toMatchObject([
      { value: true },
      { reason: { message: 'broken' } },
      { value: true },
    ]);
    await release();
    expect(await third).toBe(true);
    expect(await stored()).toEqual([
      ['dc_1', 2],
      ['dc_2', 1],
      ['dc_3', 2],
      ['dc_4', 2],
    ]);
  });

  it('fails only for the emitter whose change the app cannot handle', async () => {
    fails = (id) => (id === 'dc_2' ? new Error('broken') : undefined);
    const learnt = await Promise.allSettled(['dc_1', 'dc_2', 'dc_3'].map((id) => directory.learn(state(id as EmitterId))));
    expect(learnt).toMatchObject([{ value: true }, { reason: { message: 'broken' } }, { value: true }]);
    expect(await stored()).toEqual([
      ['dc_1', 1],
      ['dc_3', 1],
    ]);
  });

  it('ends one emitter of an account at a time, and those of four accounts, so that they do not occupy all connections', async () => {
    const many = Array.from({ length: 8 }, (_, n): EmitterState => ({ ...state(`dc_${n}`), owner_id: n < 3 ? 'u_1' : `u_${n}` }));
    await Promise.all(many.map((each) => directory.learn(each)));
    const { promise, resolve } = Promise.withResolvers<void>();
    mayEnd = promise;
    const ended = many.map((each) => directory.learn({ ...each, version: 2, active: false, deleted: true }));
    // another change is not held up, and takes longer than the next end would take to begin
    for (let version = 1; ending.length < 4 || version < 20; version++) await directory.learn(state('dc_9', version));
    expect([...ending].sort()).toEqual(['dc_0', 'dc_3', 'dc_4', 'dc_5']);
    resolve();
    expect(await Promise.all(ended)).toEqual(many.map(() => true));
    expect(ending).toHaveLength(8);
  });

  it('applies an announced change also if that takes longer than the caller waits', async () => {
    await directory.learn(state('dc_1'));
    const { promise, resolve } = Promise.withResolvers<void>();
    mayEnd = promise;
    const end = { ...state('dc_1', 2), active: false, deleted: true };
    await expect(directory.learnAnnounced(end, Date.now() + 10)).rejects.toThrow('not applied yet');
    const learnt = directory.learnt('dc_1');
    resolve();
    await learnt;
    expect((await directory.known(['dc_1'])).get('dc_1')).toMatchObject({ deleted: true, version: 2 });
    expect(await directory.learnAnnounced(end, Date.now() + 10_000)).toBe(false);
  });

  it('needs no reply of the catalog for emitters whose facts arrive meanwhile', async () => {
    const [asked, silent] = [Promise.withResolvers<void>(), Promise.withResolvers<EmitterState[]>()];
    messages.replyTo(findEmitters, (() => {
      asked.resolve();
      return silent.promise;
    }) as never);
    const found = directory.find(['dc_1', 'dc_2']);
    await asked.promise;
    expect(await Promise.all([directory.learn(state('dc_1')), directory.learn(state('dc_2'))])).toEqual([true, true]);
    expect([...(await found).keys()].sort()).toEqual(['dc_1', 'dc_2']);
    silent.reject(new Unavailable('late'));
  });

  it('needs no catalog for emitters that another replica has learnt meanwhile, and fails for others', async () => {
    messages.replyTo(findEmitters, (async () => {
      await new EmitterDirectory(db.database, messages as unknown as Messages).learn(state('dc_1'));
      throw new Unavailable('down');
    }) as never);
    expect([...(await directory.find(['dc_1'])).keys()]).toEqual(['dc_1']);
    await expect(directory.find(['dc_1', 'dc_2'])).rejects.toThrow('down');
  });

  describe('of a workflow', () => {
    const workflow = (version: number, more: Partial<EmitterState> = {}): EmitterState => ({
      ...state('p_1', version),
      kind: 'workflow',
      ...more,
    });
    const isActive = async () => (await directory.find(['p_1'])).get('p_1')?.active;
    const asked = () => messages.requests.map(({ payload }) => payload as FindEmitters);

    it('is looked up each time, also in the topic that registers it, because it may be registered at any moment', async () => {
      expect(await isActive()).toBeUndefined();
      catalog = [workflow(1)];
      expect(await isActive()).toBe(true);
      expect(asked()).toEqual(Array(2).fill({ ids: ['p_1'], up_to_date: true }));
    });

    it('is looked up after it was removed, because it may have returned', async () => {
      const removed = workflow(2, { active: false, deleted: true });
      await directory.learn(removed);
      expect((await directory.find(['p_1'])).get('p_1')).toMatchObject({ deleted: true });
      catalog = [workflow(3)];
      expect(await isActive()).toBe(true);
      await directory.learn({ ...removed, version: 4 });
      messages.replyTo(findEmitters, () => {
        throw new Unavailable('down');
      });
      await expect(isActive()).rejects.toThrow('down');
    });

    it('has returned although the fact of its removal arrives while it is looked up', async () => {
      const [asked, replied] = [Promise.withResolvers<void>(), Promise.withResolvers<EmitterState[]>()];
      messages.replyTo(findEmitters, (() => {
        asked.resolve();
        return replied.promise;
      }) as never);
      const found = directory.find(['p_1']);
      await asked.promise;
      await directory.learn(workflow(2, { active: false, deleted: true }));
      replied.resolve([workflow(3)]);
      expect((await found).get('p_1')).toMatchObject({ active: true, deleted: false });
    });
  });

  it('looks up the new sources of an account that it does not know, also one that did not exist a moment ago, some at a time', async () => {
    await directory.learn(state('dc_0'));
    expect([...(await directory.find(['dc_1'])).keys()]).toEqual([]);
    const ids = Array.from({ length: 1200 }, (_, n): EmitterId => `dc_${n}`);
    messages.replyTo(findNewEmitters, () => ids as SourceId[]);
    catalog = ids.map((id) => state(id));
    messages.requests.length = 0;
    await directory.learnNew('u_1');
    const asked = messages.requests.filter(({ name }) => name === findEmitters.name).map(({ payload }) => (payload as FindEmitters).ids);
    // a deployment may be large, and so may a reply
    expect(Math.max(...asked.map(({ length }) => length))).toBe(20);
    expect(asked.flat().sort()).toEqual(ids.slice(1).sort());
    expect((await directory.known(ids)).size).toBe(1200);
  });

  it('looks up emitters whose states are too large for one reply in smaller parts', async () => {
    const ids = Array.from({ length: 11 }, (_, n): EmitterId => `dc_${n}`);
    catalog = ids.slice(1).map((id) => state(id));
    messages.replyTo(findEmitters, (query) => {
      if (query.ids.length > 3) throw new SluiceError('unprocessable', 'the response would be larger than 16777216 bytes');
      return catalog.filter(({ emitter_id }) => query.ids.includes(emitter_id));
    });
    expect([...(await directory.find(ids)).keys()].sort()).toEqual(ids.slice(1).sort());
    catalog = ids.slice(1).map((id) => state(id, 2));
    expect(await directory.learnAll()).toBe(10);
  });

  it.each([true, false])('asks for deployments only if the app needs them: %p', async (needsConfigured) => {
    const handler = new Handler();
    handler.needsConfigured = needsConfigured;
    await new EmitterDirectory(db.database, messages as unknown as Messages, handler).find(['dc_1']);
    expect(messages.requests.map(({ payload }) => (payload as FindEmitters).without_deployments === true)).toEqual([!needsConfigured]);
  });

  describe('of a state in the topic', () => {
    const [deleted, off] = [{ active: false, deleted: true }, { active: false }];
    beforeEach(async () => {
      await directory.learn(state('dc_1', 3));
      handled = [];
    });

    it.each([
      ['a deletion', deleted],
      ['a deactivation', off],
    ])('does not apply %s that a restore of the catalog has undone', async (_, end) => {
      catalog = [state('dc_1', 3)];
      expect(await directory.learnFromTopic({ ...state('dc_1', 7), ...end })).toBe(false);
      // the catalog has published its state again
      catalog = [state('dc_1', 8)];
      expect(await directory.learnFromTopic({ ...state('dc_1', 7), ...end })).toBe(true);
      expect([handled, await stored()]).toEqual([[['dc_1', 8, false]], [['dc_1', 8]]]);
    });

    it('applies a deletion if the catalog does not have the emitter, or has created it again', async () => {
      expect(await directory.learnFromTopic({ ...state('dc_1', 4), ...deleted })).toBe(true);
      await directory.learn(state('dc_1', 5));
      catalog = [{ ...state('dc_1', 7), created_at_ms: 6 }];
      expect(await directory.learnFromTopic({ ...state('dc_1', 6), ...deleted })).toBe(true);
      expect(handled.map(([, version]) => version)).toEqual([4, 5, 6]);
    });

    it('applies a deactivation of the catalog', async () => {
      catalog = [{ ...state('dc_1', 4), ...off }];
      expect(await directory.learnFromTopic({ ...state('dc_1', 4), ...off })).toBe(true);
    });

    it('asks the catalog only about what ends', async () => {
      for (const each of [state('dc_1', 4), { ...state('dc_1', 2), ...deleted }, { ...state('dc_2', 1), ...deleted }])
        await directory.learnFromTopic(each);
      expect(messages.requests).toEqual([]);
    });

    it('does not ask the catalog about a deletion whose announcement is being applied', async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      mayEnd = promise;
      const announced = directory.learnAnnounced({ ...state('dc_1', 4), ...deleted }, Date.now() + 10_000);
      const fact = directory.learnFromTopic({ ...state('dc_1', 4), ...deleted });
      // longer than the request would take to be sent
      for (let looks = 0; ending.length === 0 || looks < 5; looks++) await directory.look('dc_1');
      resolve();
      expect([await announced, await fact, messages.requests]).toEqual([true, false, []]);
    });

    it('applies no deletion while the catalog, which must confirm it, is down', async () => {
      messages.replyTo(findEmitters, () => {
        throw new Unavailable('down');
      });
      await expect(directory.learnFromTopic({ ...state('dc_1', 4), ...deleted })).rejects.toThrow('down');
      expect(await stored()).toEqual([['dc_1', 3]]);
    });
  });

  it('knows when an emitter was last activated and deactivated', async () => {
    const switched = async () => {
      const { rows } = await db.database.query<{ on: number; off: number }>(
        'SELECT activated_at_ms AS on, deactivated_at_ms AS off FROM emitter',
      );
      return rows[0]!;
    };
    await directory.learn(state('dc_1', 1));
    await directory.learn(state('dc_1', 2));
    expect(await switched()).toEqual({ on: 0, off: 0 });
    await directory.learn({ ...state('dc_1', 3), active: false });
    const { off } = await switched();
    expect(Math.abs(off - Date.now())).toBeLessThan(10_000);
    await directory.learn({ ...state('dc_1', 4), active: false });
    await directory.learn(state('dc_1', 5));
    const last = await switched();
    expect(last.off).toBe(off);
    expect(last.on).toBeGreaterThanOrEqual(off);
  });

  it('knows when it learnt that an emitter was deleted, also one that it did not know before', async () => {
    const deletedAt = async (id: EmitterId) => {
      const { rows } = await db.database.query<{ at: number }>('SELECT deleted_at_ms AS at FROM emitter WHERE id = $1', [id]);
      return rows[0]!.at;
    };
    await directory.learn({ ...state('dc_1', 1), active: false });
    expect(await deletedAt('dc_1')).toBe(0);
    for (const id of ['dc_1', 'dc_2'] as const) {
      await directory.learn({ ...state(id, 2), active: false, deleted: true });
      expect(Math.abs((await deletedAt(id)) - Date.now())).toBeLessThan(10_000);
    }
    const first = await deletedAt('dc_1');
    await directory.learn({ ...state('dc_1', 3), active: false, deleted: true });
    expect(await deletedAt('dc_1')).toBe(first);
  });

  it('learns all states after facts were lost, also which sources do not exist any more', async () => {
    // more than one query asks for
    const ids = Array.from({ length: 1200 }, (_, n) => `dc_${n}` as SourceId);
    await Promise.all(
      [...ids, 'p_known' as const, 'p_removed' as const].map((id) =>
        directory.learn({ ...state(id), kind: isId('workflow', id) ? 'workflow' : 'source' }),
      ),
    );
    catalog = ids.slice(0, 1100).map((id) => state(id));
    catalog[3] = { ...state('dc_3', 4), active: false };
    catalog.push({ ...state('p_removed', 2), kind: 'workflow', active: false, deleted: true });
    handled = [];
    expect(await directory.learnAll()).toBe(102);
    expect((await directory.known(['dc_3'])).get('dc_3')).toMatchObject({ active: false, deleted: false, version: 4 });
    const { rows } = await db.database.query<{ id: string; active: boolean; version: number }>(
      'SELECT id, active, version FROM emitter WHERE deleted',
    );
    expect(new Set(rows.map(({ id }) => id))).toEqual(new Set([...ids.slice(1100), 'p_removed']));
    expect(rows.every(({ active, version }) => !active && version === 2)).toBe(true);
    expect(handled).toHaveLength(102);
    // the catalog keeps the states of removed workflows: it has not read the registration of this one yet
    expect((await directory.known(['p_known'])).get('p_known')).toMatchObject({ deleted: false });
    expect(await directory.learnAll()).toBe(0);
  });
});
