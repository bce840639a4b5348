import { expect, it } from '@jest/globals';
import { RequestPipe } from '../http/request.pipe.js';
import { DeleteEventsQuery } from './event.dto.js';

const read = (query: object) => new RequestPipe().transform(query, { type: 'query', metatype: DeleteEventsQuery });

it.each([
  [{}],
  [{ start_id: '100-1' }],
  [{ end_id: '100-1' }],
  [{ start_id: '100-1', end_id: '100-1' }],
  [{ start_id: '100-9', end_id: '100-10' }],
  [{ start_id: '100-9', end_id: '101-0', event_name: '$in' }],
])('events are deleted by the range %j', async (query) => {
  expect(await read(query)).toEqual(query);
});

it.each<[string, object, string[]]>([
  ['whose end is before its start by milliseconds', { start_id: '101-0', end_id: '100-5' }, ['end_id']],
  ['whose end is before its start by sequence', { start_id: '100-10', end_id: '100-9' }, ['end_id']],
  ['whose end is before its start, and a bad stream', { start_id: '5-1', end_id: '4-1', event_name: '$z' }, ['end_id', 'event_name']],
  ['without event ids', { start_id: 'x', end_id: 'y' }, ['start_id', 'end_id']],
])('events are not deleted by a range %s', async (_, query, fields) => {
  await expect(read(query)).rejects.toMatchObject({ details: { errors: fields.map((field) => expect.objectContaining({ field })) } });
});
