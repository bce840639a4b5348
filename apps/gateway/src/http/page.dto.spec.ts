import { expect, it } from '@jest/globals';
import { plainToInstance } from 'class-transformer';
import { validate } from 'class-validator';
import { cursorOf } from '#contracts';
import { EventPageQuery } from '../events/event.dto.js';
import { PageQuery } from './page.dto.js';

const fieldsOf = async (query: object, type: new () => object = PageQuery): Promise<string[]> =>
  (await validate(plainToInstance(type, query))).map(({ property }) => property);

it('a list names all bad parameters at once', async () => {
  expect((await fieldsOf({ limit: '0', after: '!', before: ['a', 'b'] })).sort()).toEqual(['after', 'before', 'limit']);
});

it.each(['010', '00', '1e1', '+1'])('the limit of a list cannot be %s', async (limit) => {
  expect(await fieldsOf({ limit })).toEqual(['limit']);
});

it('the cursors of a list may be empty', async () => {
  expect(await fieldsOf({ after: '', before: cursorOf('dc_1') })).toEqual([]);
});

it('the cursors of a list of events are event ids', async () => {
  expect(await fieldsOf({ after: '1700000000000-0', before: '' }, EventPageQuery)).toEqual([]);
  for (const after of [cursorOf('dc_1'), '01700000000000-0', '1700000000000-00'])
    expect(await fieldsOf({ after }, EventPageQuery)).toEqual(['after']);
});

it('the message about a stream that cannot be read names the reserved streams', async () => {
  const [error] = await validate(plainToInstance(EventPageQuery, { event_name: '$x' }));
  expect(Object.values(error?.constraints ?? {})).toEqual(['event_name may begin with $ only as $errors, $logs or $in']);
});
