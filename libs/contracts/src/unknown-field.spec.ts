import { expect, it } from '@jest/globals';
import { isTypo, unknownField, unknownFields } from './unknown-field.js';

const known = ['component_id', 'component_code', 'name', 'configured_props'];

it.each([
  ['nmae', 'name'],
  ['componentId', 'component_id'],
  ['component-code', 'component_code'],
  ['configured_prop', 'configured_props'],
])('suggests for %j the field %j', (name, nearest) => {
  expect(unknownField(name, known)).toBe(`unknown field ${JSON.stringify(name)}; did you mean ${nearest}?`);
});

it.each(['emitter', '', 'x'.repeat(5000)])('lists the known fields for %j', (name) => {
  expect(unknownField(name, known)).toBe(`unknown field ${JSON.stringify(name.slice(0, 100))}; known are ${known.join(', ')}`);
});

it('lists the known fields once for several names', () => {
  expect(unknownFields(['nmae', 'emitter', 'id', 'componentId', 'user'], known)).toEqual([
    'unknown field "nmae"; did you mean name?',
    `unknown field "emitter"; known are ${known.join(', ')}`,
    'unknown field "id"',
    'unknown field "componentId"; did you mean component_id?',
    'unknown field "user"',
  ]);
});

it('calls the field of a query a parameter', () => {
  expect(unknownFields(['nmae'], known, 'parameter')).toEqual(['unknown parameter "nmae"; did you mean name?']);
});

it.each<[string, readonly string[], boolean]>([
  ...['event_nam', 'event-name', 'eventName', 'Event_Name', 'evnt_name', 'emitterid', 'listener', 'listenerid'].map(
    (name): [string, string[], boolean] => [name, ['emitter_id', 'listener_id', 'event_name', 'name'], true],
  ),
  ...['event', 'user_id', 'org_id', 'api_key', 'limit', 'type', 'ts', '_', '', 'x'.repeat(5000)].map(
    (name): [string, string[], boolean] => [name, ['emitter_id', 'listener_id', 'event_name', 'name'], false],
  ),
  ...['uid', 'ts', 'org_id'].map((name): [string, string[], boolean] => [name, ['event_name', 'id'], false]),
])('decides whether %j is a mistyped name of %j: %j', (name, names, expected) => {
  expect(isTypo(name, names)).toBe(expected);
});
