import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { newId } from '#contracts';
import { OutboxRecord } from '#outbox';
import { type FreshDatabase, freshDatabase } from '#testing';
import { ShortenNamesOfWorkflows1799164800001 } from '../database/migrations/0013-shorten-names-of-workflows.js';
import { schema } from '../database/schema.js';
import { SuspendedAccountRow } from '../sources/source.entity.js';
import { WorkflowRow, WorkflowsRepository } from './workflows.repository.js';

let db: FreshDatabase;
beforeAll(async () => (db = await freshDatabase(schema)));
afterAll(() => db.drop());

it('a workflow keeps its owner, grows its version with each change, and publishes changes only', async () => {
  const workflows = new WorkflowsRepository(db.database, db.database.rows(WorkflowRow));
  const [id, owner] = [newId('workflow'), newId('user')];
  await workflows.put(id, owner, 'Mail', true);
  expect(await workflows.put(id, owner, 'Mail', true)).toBe(true);
  expect(await workflows.put(id, newId('user'), 'Stolen', true)).toBe(false);
  const [created] = await workflows.states([id, newId('workflow')]);
  expect(created).toMatchObject({ emitter_id: id, owner_id: owner, name: 'Mail', active: true, deleted: false, removed_at_ms: undefined });
  await workflows.remove(id, 5);
  await workflows.remove(id, 6);
  expect(await workflows.states([id])).toMatchObject([{ emitter_id: id, deleted: true, active: false, name: '' }]);
  await workflows.put(id, owner, 'Mail', false);
  const [returned] = await workflows.states([id]);
  expect(returned).toMatchObject({ name: 'Mail', active: false, deleted: false, removed_at_ms: 5 });
  expect(returned!.created_at_ms).toBeGreaterThanOrEqual(created!.created_at_ms);
  const facts = await db.database.rows(OutboxRecord).find({ order: { id: 'ASC' } });
  const versions = facts.map(({ value }) => (JSON.parse(String(value)) as { version: number }).version);
  expect(versions).toEqual([created!.version, expect.any(Number), returned!.version]);
  expect([...new Set(versions)].sort()).toEqual(versions);
});

it('long names that earlier versions stored are shortened by a migration, those of removed workflows to nothing', async () => {
  const workflows = new WorkflowsRepository(db.database, db.database.rows(WorkflowRow));
  const [long, short, removed, owner] = [newId('workflow'), newId('workflow'), newId('workflow'), newId('user')];
  await workflows.put(long, owner, '🙂'.repeat(2000), true);
  await workflows.put(short, owner, 'Mail', true);
  await workflows.put(removed, owner, 'Gone', true);
  await workflows.remove(removed, 5);
  await db.database.query("UPDATE workflow SET name = 'Gone' WHERE id = $1", [removed]);
  await db.database.query(new ShortenNamesOfWorkflows1799164800001().sql);
  const names = new Map((await workflows.states([long, short, removed])).map(({ emitter_id, name }) => [emitter_id, name]));
  expect([names.get(long), names.get(short), names.get(removed)]).toEqual(['🙂'.repeat(1024), 'Mail', '']);
});

it('the workflows of an account are suspended, resumed and removed together', async () => {
  const workflows = new WorkflowsRepository(db.database, db.database.rows(WorkflowRow));
  const [owner, other] = [newId('user'), newId('user')];
  const [on, off, foreign] = [newId('workflow'), newId('workflow'), newId('workflow')].sort();
  await workflows.put(on!, owner, 'Mail', true);
  await workflows.put(off!, owner, 'Mail', false);
  await workflows.put(foreign!, other, 'Mail', true);
  const states = async () =>
    (await workflows.states([on!, off!, foreign!]))
      .filter(({ deleted }) => !deleted)
      .sort((a, b) => (a.emitter_id < b.emitter_id ? -1 : 1))
      .map(({ active, suspended }) => [active, suspended]);
  const suspend = async (suspended: boolean) => {
    const accounts = db.database.rows(SuspendedAccountRow);
    await (suspended ? accounts.save({ owner_id: owner }) : accounts.delete({ owner_id: owner }));
    return (await workflows.suspend(owner, suspended, 100)).length;
  };
  const [isOn, isOff, isSuspended] = [
    [true, undefined],
    [false, undefined],
    [false, true],
  ];
  expect([await suspend(true), await suspend(true)]).toEqual([2, 0]);
  // a record of the topic does not let it continue
  await workflows.put(on!, owner, 'Renamed', true);
  expect(await states()).toEqual([isSuspended, isOff, isOn]);
  await suspend(false);
  expect(await states()).toEqual([isOn, isOff, isOn]);
  // one that is removed and returns remains suspended as long as its account is, and no longer
  await suspend(true);
  await workflows.remove(on!, 5);
  await workflows.put(on!, owner, 'Mail', true);
  expect(await states()).toEqual([isSuspended, isOff, isOn]);
  await workflows.remove(on!, 5);
  await suspend(false);
  await workflows.put(on!, owner, 'Mail', true);
  expect(await states()).toEqual([isOn, isOff, isOn]);
  // one that is registered, or returns, while its account is suspended is suspended, too
  await workflows.remove(on!, 5);
  await suspend(true);
  await workflows.put(on!, owner, 'Mail', true);
  const late = newId('workflow');
  await workflows.put(late, owner, 'Mail', true);
  expect([await states(), await workflows.states([late])]).toMatchObject([
    [isSuspended, isOff, isOn],
    [{ active: false, suspended: true }],
  ]);
  expect(await suspend(false)).toBe(3);
  expect([await states(), await workflows.states([late])]).toMatchObject([[isOn, isOff, isOn], [{ active: true }]]);
  await workflows.remove(late, 5);
  expect([(await workflows.removeNext(owner, 100)).length, (await workflows.removeNext(owner, 100)).length]).toEqual([2, 0]);
  expect(await states()).toEqual([isOn]);
});

it('the workflows of an account are suspended and removed in parts', async () => {
  const workflows = new WorkflowsRepository(db.database, db.database.rows(WorkflowRow));
  const owner = newId('user');
  for (let n = 0; n < 5; n++) await workflows.put(newId('workflow'), owner, 'Mail', true);
  const partsOf = async (next: () => Promise<unknown[]>) =>
    [await next(), await next(), await next(), await next()].map(({ length }) => length);
  expect(await partsOf(() => workflows.suspend(owner, true, 2))).toEqual([2, 2, 1, 0]);
  expect(await partsOf(() => workflows.removeNext(owner, 2))).toEqual([2, 2, 1, 0]);
});

it('workflows are published again over newer states that the database has lost, also if they are removed', async () => {
  const workflows = new WorkflowsRepository(db.database, db.database.rows(WorkflowRow));
  const [on, removed, unknown, owner] = [newId('workflow'), newId('workflow'), newId('workflow'), newId('user')];
  for (const id of [on, removed]) await workflows.put(id, owner, 'Mail', true);
  const known = (await workflows.states([on, removed])).map((state) => ({ ...state, version: state.version + 1_000_000 }));
  await workflows.remove(removed, 5);
  await db.database.query('TRUNCATE outbox');
  expect(await workflows.overrule([...known, { ...known[0]!, emitter_id: unknown }])).toBe(2);
  const facts = await db.database.rows(OutboxRecord).find();
  const states = facts.map(({ key, value }) => ({ key, ...(JSON.parse(String(value)) as { deleted: boolean; version: number }) }));
  const newer = known.map(({ emitter_id, version }) => ({ key: emitter_id, version: version + 1, deleted: emitter_id === removed }));
  expect(states).toHaveLength(2);
  expect(states).toEqual(expect.arrayContaining(newer.map((each) => expect.objectContaining(each))));
  expect(await workflows.versions([on, removed, unknown])).toEqual(new Map(newer.map(({ key, version }) => [key, version])));
  expect(await workflows.overrule(known)).toBe(0);
});
