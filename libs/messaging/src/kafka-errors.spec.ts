import { describe, expect, it } from '@jest/globals';
import { explainKafkaError, isBrokerFailure, isRefused, reasonOf } from './kafka-errors.js';

const failure = (name: string, message: string, more: object = {}): Error => Object.assign(new Error(message), { name, ...more });
const retried = (cause: Error): Error => failure('KafkaJSNumberOfRetriesExceeded', cause.message, { cause });

describe('a failure of Kafka that waiting does not cure', () => {
  it.each([
    [
      failure('KafkaJSSASLAuthenticationError', 'SASL SCRAM SHA512 authentication failed'),
      /^Kafka refuses the login: .*KAFKA_SASL_PASSWORD/,
    ],
    [
      failure('KafkaJSConnectionError', 'Connection error: self-signed certificate in certificate chain', { broker: 'kafka:9093' }),
      /^The TLS connection to Kafka \(kafka:9093\) fails: self-signed certificate .*KAFKA_SSL_CA_LOCATION/,
    ],
    [failure('KafkaJSConnectionError', "Connection error: Hostname/IP does not match certificate's altnames"), /^The TLS connection/],
    [
      failure('KafkaJSProtocolError', 'Not authorized to access topics: [Topic authorization failed]', {
        type: 'TOPIC_AUTHORIZATION_FAILED',
      }),
      /^Kafka denies access: .*sluice kafka acls/,
    ],
    [
      failure('KafkaJSAggregateError', 'Topic creation errors', {
        errors: [
          failure('KafkaJSCreateTopicError', 'Replication-factor is invalid', { type: 'INVALID_REPLICATION_FACTOR' }),
          failure('KafkaJSCreateTopicError', 'Replication-factor is invalid', { type: 'INVALID_REPLICATION_FACTOR' }),
        ],
      }),
      /^Kafka has too few brokers for the replicas: Replication-factor is invalid\. Check SLUICE_REPLICATION_FACTOR/,
    ],
    [failure('Error', 'id.example.com issued no token: 401 invalid_client'), /^No token to log in to Kafka/],
    [
      failure('KafkaJSConnectionError', 'id.example.com does not respond: self-signed certificate'),
      /^No token to log in to Kafka: id\.example\.com does not respond: self-signed certificate\. .*NODE_EXTRA_CA_CERTS/,
    ],
  ])('%s is explained in one line', (error, line) => {
    expect(explainKafkaError(error)).toMatch(line);
    expect(explainKafkaError(retried(error))).toMatch(line);
    expect(isBrokerFailure(error)).toBe(false);
  });
});

it.each([
  ['MESSAGE_TOO_LARGE', true],
  ['RECORD_LIST_TOO_LARGE', true],
  ['INVALID_RECORD', true],
  ['INVALID_TIMESTAMP', false],
  ['NOT_LEADER_FOR_PARTITION', false],
])('a record with the error %s is refused for good: %s', (type, expected) => {
  expect(isRefused(failure('KafkaJSProtocolError', 'no', { type }))).toBe(expected);
});

describe('a failure of a broker that is down', () => {
  const away = failure('KafkaJSConnectionError', 'Connection error: connect ECONNREFUSED 127.0.0.1:9092', { code: 'ECONNREFUSED' });

  it('is not reported as one that a person must fix', () => {
    for (const error of [away, retried(away), failure('KafkaJSGroupCoordinatorNotFound', 'Failed to find group coordinator')]) {
      expect(explainKafkaError(error)).toBeUndefined();
      expect(isBrokerFailure(error)).toBe(true);
    }
    expect(reasonOf(retried(away))).toBe('Connection error: connect ECONNREFUSED 127.0.0.1:9092');
  });

  it.each([
    'Not connected',
    'Closed connection',
    'Connection closed by the server',
    'Connection timeout',
    'Connection error: read ECONNRESET',
    'Request SaslAuthenticate(key: 36, version: 1) timed out',
    'The broker does not respond',
  ])('is recognised when the connection ends during a login: %s', (reason) => {
    const error = failure('KafkaJSSASLAuthenticationError', `SASL SCRAM SHA512 authentication failed: ${reason}`);
    expect(explainKafkaError(error)).toBeUndefined();
    expect(isBrokerFailure(error)).toBe(true);
  });

  it('is distinguished from a bug', () => expect(isBrokerFailure(new TypeError('x is undefined'))).toBe(false));
});
