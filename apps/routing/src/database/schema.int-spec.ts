import { expect, it } from '@jest/globals';
import { schemaDifferences } from '#testing';
import { schema } from './schema.js';

it('entities and migrations describe the same tables', async () => {
  expect(await schemaDifferences(schema)).toEqual([]);
});
