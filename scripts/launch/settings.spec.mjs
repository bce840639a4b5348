import { describe, expect, test } from '@jest/globals';
import { apiUrl, healthPorts, portsInUse, reachableHosts, readSettings } from './settings.mjs';

describe('the variables of npm start', () => {
  test('are all optional', () => {
    expect(readSettings({})).toMatchObject({
      httpHost: '127.0.0.1',
      endpointsHost: '127.0.0.1',
      healthHost: '127.0.0.1',
      httpPort: 3000,
      endpointsPort: 3001,
      kafkaPort: 9092,
      postgresPort: 5433,
      kafkaBrokers: undefined,
      databaseUrl: undefined,
      allowPrivateHosts: '127.0.0.0/8,::1,localhost',
    });
  });

  test('count as absent if empty, but an empty list of private hosts allows none', () => {
    const settings = readSettings({ SLUICE_HTTP_PORT: '', SLUICE_API_KEY: '', KAFKA_BROKERS: '', SLUICE_ALLOW_PRIVATE_HOSTS: '' });
    expect(settings).toMatchObject({ httpPort: 3000, apiKey: undefined, kafkaBrokers: undefined, allowPrivateHosts: '' });
  });

  test.each([
    ['SLUICE_HOST', 'everywhere'],
    ['SLUICE_HTTP_PORT', '0'],
    ['SLUICE_ENDPOINTS_PORT', '65536'],
    ['SLUICE_HEALTH_PORT', '65532'],
    ['SLUICE_KAFKA_PORT', '1e3'],
    ['SLUICE_POSTGRES_PORT', '-1'],
    ['SLUICE_API_KEY', 'short'],
    ['SLUICE_API_KEY', 'with a space'],
    ['SLUICE_API_KEY', 'x'.repeat(129)],
    ['KAFKA_BROKERS', 'kafka'],
    ['KAFKA_BROKERS', 'kafka-1:9092,kafka-2:'],
    ['DATABASE_URL', 'mysql://host/database'],
    ['DATABASE_URL', 'somewhere'],
    ['SLUICE_SHUTDOWN_TIMEOUT', '45'],
    ['SLUICE_SHUTDOWN_TIMEOUT', '0s'],
    ['SLUICE_SHUTDOWN_TIMEOUT', '0.3ms'],
    ['SLUICE_SHUTDOWN_TIMEOUT', '21d'],
  ])('are rejected by name: %s=%s', (name, value) => {
    expect(() => readSettings({ [name]: value })).toThrow(name);
  });

  test('are reported all at once if several are wrong', () => {
    expect(() => readSettings({ SLUICE_HTTP_PORT: 'a', SLUICE_KAFKA_PORT: 'b' })).toThrow(/SLUICE_HTTP_PORT.*\n.*SLUICE_KAFKA_PORT/);
  });

  test.each(['DATABASE_PASSWORD', 'DATABASE_PASSWORD_FILE'])('need DATABASE_URL beside %s', (name) => {
    expect(() => readSettings({ [name]: 'secret' })).toThrow(`${name} is set, but DATABASE_URL is not`);
    expect(readSettings({ [name]: 'secret', DATABASE_URL: 'postgres://u@db/postgres' }).databaseUrl).toBe('postgres://u@db/postgres');
    expect(readSettings({ [name]: '' }).databaseUrl).toBeUndefined();
  });

  test('are not repeated in the report if they are secret', () => {
    expect(() => readSettings({ SLUICE_API_KEY: 'secret' })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('secret') }),
    );
  });

  test('must not contain the same port twice', () => {
    expect(() => readSettings({ SLUICE_HTTP_PORT: '3001' })).toThrow('SLUICE_ENDPOINTS_PORT and SLUICE_HTTP_PORT');
  });

  test('need only two ports if the broker and the database are elsewhere', () => {
    const settings = readSettings({ KAFKA_BROKERS: 'kafka:9092', DATABASE_URL: 'postgres://u:p@db/postgres', SLUICE_HTTP_PORT: '9092' });
    expect(portsInUse(settings).map(({ port }) => port)).toEqual([9092, 3001]);
  });

  test.each([
    [{}, '1h'],
    [{ KAFKA_BROKERS: 'kafka:9092' }, '1h'],
    [{ KAFKA_BROKERS: 'kafka:9092', DATABASE_URL: 'postgres://u:p@db/postgres' }, ''],
    [{ SLUICE_STARTUP_TIMEOUT: '5m' }, '5m'],
  ])('let the services wait for an hour while a store of the instance recovers: %j', (variables, expected) => {
    expect(readSettings(variables).startupTimeout).toBe(expected);
  });

  test.each([
    [{}, 10_000],
    [{ SLUICE_SHUTDOWN_TIMEOUT: '' }, 10_000],
    [{ SLUICE_SHUTDOWN_TIMEOUT: '45s' }, 47_000],
    [{ SLUICE_SHUTDOWN_TIMEOUT: '1.5m' }, 92_000],
  ])('let a service stop for two seconds longer than it waits for its work: %j', (variables, graceMs) => {
    expect(readSettings(variables).graceMs).toBe(graceMs);
  });

  test.each([
    [{}, 'http://127.0.0.1:3000'],
    [{ SLUICE_HOST: '0.0.0.0' }, 'http://127.0.0.1:3000'],
    [{ SLUICE_HOST: '::' }, 'http://[::1]:3000'],
    [{ SLUICE_HOST: '192.0.2.1' }, 'http://192.0.2.1:3000'],
    [{ SLUICE_HTTP_HOST: '127.0.0.2' }, 'http://127.0.0.2:3000'],
    [{ SLUICE_HOST: '192.0.2.1', SLUICE_HTTP_HOST: 'sluice.lan' }, 'http://sluice.lan:3000'],
  ])('determine the URL at which programs of this machine reach the REST API: %j', (variables, url) => {
    expect(apiUrl(readSettings(variables))).toBe(url);
  });

  test('give each app its own port for health and metrics', () => {
    const settings = readSettings({ SLUICE_HEALTH_PORT: '8080', SLUICE_KAFKA_PORT: '8090' });
    expect(Object.fromEntries(healthPorts(settings))).toEqual({
      gateway: 8080,
      catalog: 8081,
      routing: 8082,
      'event-store': 8083,
      runtime: 8084,
    });
    expect(portsInUse(settings)).toContainEqual({ variable: 'SLUICE_HEALTH_PORT', port: 8084 });
    expect(() => readSettings({ SLUICE_HEALTH_PORT: '2998' })).toThrow('SLUICE_HEALTH_PORT and SLUICE_HTTP_PORT');
    expect(() => readSettings({ SLUICE_HEALTH_PORT: 'x' })).toThrow('SLUICE_HEALTH_PORT must be a port');
  });

  test('let components reach this machine, but none of the ports of Sluice', () => {
    expect(reachableHosts(readSettings({ SLUICE_PROTECTED_HOSTS: 'vault:8200' }), [9093])).toEqual({
      SLUICE_ALLOW_PRIVATE_HOSTS: '127.0.0.0/8,::1,localhost',
      SLUICE_PROTECTED_HOSTS: '127.0.0.1:3000,127.0.0.1:3001,127.0.0.1:9092,127.0.0.1:5433,127.0.0.1:9093,vault:8200',
    });
  });
});
