import { expect, it } from '@jest/globals';
import type { ConfigError } from '#config';
import { DatabaseConfig } from './database.config.js';

it('uses the password instead of the one in the URL', () =>
  expect(DatabaseConfig.read({ DATABASE_URL: 'postgres://user:old@host/postgres', DATABASE_PASSWORD: 'a b' }).serverUrl).toBe(
    'postgres://user:a%20b@host/postgres',
  ));

const problemsOf = (env: Record<string, string>): string[] => {
  try {
    DatabaseConfig.read(env);
    return [];
  } catch (error) {
    return (error as ConfigError).problems;
  }
};

const TOO_SMALL = 'SLUICE_DATABASE_POOL must be 0 or at least 3: a process keeps up to two connections for its locks';

it.each([
  ['0', []],
  ['1', [TOO_SMALL]],
  ['2', [TOO_SMALL]],
  ['3', []],
])('rejects a pool in which no statement would get a connection: %s', (pool, expected) =>
  expect(problemsOf({ DATABASE_URL: 'postgres://host/postgres', SLUICE_DATABASE_POOL: pool })).toEqual(expected),
);

const BAD_SSL_MODE = 'DATABASE_URL must have one of these values of sslmode: disable, no-verify, prefer, require, verify-ca, verify-full';

it.each([
  ['verify-full', []],
  ['disable', []],
  ['bogus', [BAD_SSL_MODE]],
  // of libpq
  ['allow', [BAD_SSL_MODE]],
])('rejects values of sslmode that the driver does not know: %s', (mode, expected) =>
  expect(problemsOf({ DATABASE_URL: `postgres://host/postgres?sslmode=${mode}` })).toEqual(expected),
);

const NO_HOST = 'DATABASE_PASSWORD is set, but DATABASE_URL has no host, so the password would not be used';

it.each([
  [{ DATABASE_URL: 'postgres://host/postgres', DATABASE_PASSWORD: 'p' }, []],
  [{ DATABASE_URL: 'postgres:///postgres?host=/run/postgresql' }, []],
  [{ DATABASE_URL: 'postgres:///postgres?host=/run/postgresql', DATABASE_PASSWORD: 'p' }, [NO_HOST]],
  [{ DATABASE_PASSWORD: 'p' }, ['DATABASE_URL is required']],
])('rejects a password that would not be used: %j', (env, expected) => expect(problemsOf(env)).toEqual(expected));
