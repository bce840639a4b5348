import { expect, it } from '@jest/globals';
import { schemaDifferences } from '#testing';
import { schema } from './schema.js';

it('entities and migrations describe the same tables', async () => {
  expect(await schemaDifferences(schema)).toEqual([]);
});

it('the migrations include those that were on the branch main for an hour, without which their databases would count as newer', () => {
  const names = schema.migrations.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(['IndexPostponedEventsOfUnknownEmitters1799078400000', 'IndexEndsOfSubscriptions1799251200003']),
  );
});
