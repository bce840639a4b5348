import { expect, it } from '@jest/globals';
import type { ConfigError } from '#config';
import { DatabaseConfig } from './database.config.js';

it('uses the password instead of the one in the URL', () =>
  expect(DatabaseConfig.read({ DATABASE_URL: 'postgres://user:old@host/postgres', DATABASE_PASSWORD: 'a b' }).serverUrl).toBe(
    'postgres://user:a%20b@host/postgres',
  ));

const NO_HOST = 'DATABASE_PASSWORD is set, but DATABASE_URL has no host, so the password would not be used';

it.each([
  [{ DATABASE_URL: 'postgres://host/postgres', DATABASE_PASSWORD: 'p' }, []],
  [{ DATABASE_URL: 'postgres:///postgres?host=/run/postgresql' }, []],
  [{ DATABASE_URL: 'postgres:///postgres?host=/run/postgresql', DATABASE_PASSWORD: 'p' }, [NO_HOST]],
  [{ DATABASE_PASSWORD: 'p' }, ['DATABASE_URL is required']],
])('rejects a password that would not be used: %j', (env, expected) => {
  let problems: string[] = [];
  try {
    DatabaseConfig.read(env);
  } catch (error) {
    ({ problems } = error as ConfigError);
  }
  expect(problems).toEqual(expected);
});
