import { expect, it } from '@jest/globals';
import { plainToInstance } from 'class-transformer';
import { validate } from 'class-validator';
import { cursorOf } from '#contracts';
import { PageQuery } from './page.dto.js';

const fieldsOf = async (query: object): Promise<string[]> =>
  (await validate(plainToInstance(PageQuery, query))).map(({ property }) => property);

it('a list names all bad parameters at once', async () => {
  expect((await fieldsOf({ limit: '0', after: '!', before: ['a', 'b'] })).sort()).toEqual(['after', 'before', 'limit']);
});

it('the cursors of a list may be empty', async () => {
  expect(await fieldsOf({ after: '', before: cursorOf('dc_1') })).toEqual([]);
});
