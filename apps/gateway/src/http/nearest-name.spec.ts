import { expect, it } from '@jest/globals';
import { nearestName } from './nearest-name.js';

it.each([
  ['nmae', 'name'],
  ['componentId', 'component_id'],
  ['component-code', 'component_code'],
  ['configured_prop', 'configured_props'],
  ['emitter', undefined],
  ['', undefined],
  ['x'.repeat(5000), undefined],
])('suggests for %j the field %j', (name, nearest) => {
  expect(nearestName(name, ['component_id', 'component_code', 'name', 'configured_props'])).toBe(nearest);
});
