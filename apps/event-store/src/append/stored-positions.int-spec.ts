import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type FreshDatabase, freshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { AppendRepository } from './append.repository.js';

describe('the stored positions', () => {
  let db: FreshDatabase;
  let events: AppendRepository;

  beforeAll(async () => {
    db = await freshDatabase(schema);
    events = new AppendRepository(db.database);
  });
  afterAll(() => db.drop());

  it('are none before anything is stored', async () => expect(await events.storedPositions()).toEqual([]));

  it('are those of the topic `events`, as numbers', async () => {
    await db.database.query(
      `INSERT INTO event_progress (topic, partition, next_offset, last_ms) VALUES ('events', 1, 0, 0), ('events', 0, 4294967296000, 1763715600123), ('other', 0, 1, 1)`,
    );
    expect(await events.storedPositions()).toEqual([
      { partition: 0, offset: 4294967296000, clock: 1763715600123 },
      { partition: 1, offset: 0, clock: 0 },
    ]);
  });
});
