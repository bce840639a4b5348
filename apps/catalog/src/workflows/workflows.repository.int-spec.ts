import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { newId } from '#contracts';
import { OutboxRecord } from '#outbox';
import { type FreshDatabase, freshDatabase } from '#testing';
import { schema } from '../database/schema.js';
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
  expect(created).toMatchObject({ emitter_id: id, owner_id: owner, name: 'Mail', active: true, deleted: false });
  await workflows.remove(id);
  await workflows.remove(id);
  expect(await workflows.states([id])).toEqual([]);
  await workflows.put(id, owner, 'Mail', false);
  const [returned] = await workflows.states([id]);
  expect(returned).toMatchObject({ active: false, deleted: false });
  expect(returned!.created_at_ms).toBeGreaterThanOrEqual(created!.created_at_ms);
  const facts = await db.database.rows(OutboxRecord).find({ order: { id: 'ASC' } });
  const versions = facts.map(({ value }) => (JSON.parse(String(value)) as { version: number }).version);
  expect(versions).toEqual([created!.version, expect.any(Number), returned!.version]);
  expect([...new Set(versions)].sort()).toEqual(versions);
});
