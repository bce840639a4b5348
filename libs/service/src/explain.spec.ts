import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { ConfigError } from '#config';
import { SluiceError } from '#contracts';
import { SecretsKeyProblem } from '#secrets';
import { CannotStart, exitCode, explain, reasonForLog } from './explain.js';

afterEach(() => void delete process.env['SLUICE_HTTP_HOST']);

it('names the variable with an address on which a service cannot listen because its name does not exist', async () => {
  const host = 'no-such-host.invalid';
  process.env['SLUICE_HTTP_HOST'] = host;
  const [error] = await once(createServer().listen(0, host), 'error').catch((thrown: unknown) => [thrown]);
  expect(explain(error)).toEqual([expect.stringMatching(/^SLUICE_HTTP_HOST: the name no-such-host\.invalid cannot be resolved \(E\w+\)$/)]);
  process.env['SLUICE_HTTP_HOST'] = '127.0.0.1';
  expect(explain(error)).toEqual([expect.stringMatching(/^PostgreSQL does not respond: /)]);
});

it.each([
  ['a variable', new ConfigError(['DATABASE_URL is required']), 78],
  ['the key of the secrets', new SecretsKeyProblem('SLUICE_SECRETS_KEY contains no key'), 78],
  ['a store that does not respond', new CannotStart('gave up waiting for Kafka'), 1],
  ['a bug', new TypeError('x is undefined'), 1],
])('the exit code shows whether another try can help after a failure because of %s', (_, error, code) => {
  expect(exitCode(error)).toBe(code);
});

describe('the reason of a failure in the log', () => {
  const named = (name: string, message: string, more: object = {}) => Object.assign(new Error(message), { name, ...more });

  it.each([
    [
      'Kafka is down',
      named('KafkaJSNumberOfRetriesExceeded', 'No', { cause: named('KafkaJSConnectionError', 'connect ECONNREFUSED') }),
      'connect ECONNREFUSED',
    ],
    ['Kafka denies access', named('KafkaJSProtocolError', 'no', { type: 'TOPIC_AUTHORIZATION_FAILED' }), 'Kafka denies access: no.'],
    ['PostgreSQL stops', named('QueryFailedError', 'terminating connection', { code: '57P01' }), 'terminating connection'],
    ['the connection to PostgreSQL ends', new Error('Connection terminated unexpectedly'), 'Connection terminated unexpectedly'],
    ['another service is down', new SluiceError('unavailable', 'routing does not respond'), 'routing does not respond'],
  ])('is one line when %s', (_, error, reason) => {
    expect(reasonForLog(error)).toContain(reason);
  });

  it.each([
    ['a bug', new TypeError('x is undefined')],
    ['a bug that kafkajs has wrapped', named('KafkaJSNonRetriableError', 'x is undefined', { cause: new TypeError('x is undefined') })],
    ['a value that PostgreSQL refuses', named('QueryFailedError', 'too long', { code: '22001' })],
  ])('is undefined for %s, so that the log has the stack', (_, error) => {
    expect(reasonForLog(error)).toBeUndefined();
  });
});
