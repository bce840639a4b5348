import { describe, expect, it } from '@jest/globals';
import { newerSchemas, SchemaTooNew } from './migrate.js';

const state = (name: string, { missing = [], unknown = [] }: { missing?: string[]; unknown?: string[] } = {}) => ({
  name,
  missing,
  unknown,
});

describe('databases of which one is newer than this version', () => {
  it('are left alone after a roll back', () => {
    const newer = state('routing', { unknown: ['Next2'] });
    expect(newerSchemas([state('gateway'), newer])).toEqual([newer]);
  });

  it('are none if migrations are only missing', () => {
    expect(newerSchemas([state('gateway', { missing: ['This1'] }), state('routing')])).toEqual([]);
  });

  it.each([
    ['the same one', [state('routing', { missing: ['This1'], unknown: ['Next2'] })], 'routing has Next2; routing lacks This1'],
    [
      'another one',
      [state('routing', { unknown: ['Next2'] }), state('runtime', { missing: ['This1'] })],
      'routing has Next2; runtime lacks This1',
    ],
  ])('are refused, with all names, if %s lacks a migration of this version', (_, states, names) => {
    expect(() => newerSchemas(states)).toThrow(SchemaTooNew);
    expect(() => newerSchemas(states)).toThrow(names);
  });
});
