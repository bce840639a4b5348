import { describe, expect, it } from '@jest/globals';
import { startHash } from './last-start.mjs';

const env = { SLUICE_HTTP_PORT: '3000', KAFKA_BROKERS: 'kafka:9092', TERM: 'xterm' };

describe('the hash of a start', () => {
  it('is the same for the same build and variables, in any order', () => {
    const { SLUICE_HTTP_PORT, ...rest } = env;
    expect(startHash('a', { ...rest, SLUICE_HTTP_PORT })).toBe(startHash('a', env));
  });

  it.each([
    ['another build', 'b', env],
    ['a changed variable', 'a', { ...env, SLUICE_HTTP_PORT: '3001' }],
    ['a new variable', 'a', { ...env, DATABASE_URL: 'postgres://db/sluice' }],
    ['a variable that is set no more', 'a', { SLUICE_HTTP_PORT: '3000' }],
  ])('differs for %s', (_, build, variables) => {
    expect(startHash(build, variables)).not.toBe(startHash('a', env));
  });

  it('does not depend on variables that the services do not read', () => {
    expect(startHash('a', { ...env, TERM: 'dumb', PWD: '/' })).toBe(startHash('a', env));
  });
});
