import { afterAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConfigError } from '#config';
import { KafkaConfig } from './kafka.config.js';
import { isBrokerFailure } from './kafka-errors.js';
import { oauthTokens } from './oauth-tokens.js';

const folder = mkdtempSync(join(tmpdir(), 'sluice-kafka-config-'));
const [pem, noPem] = [join(folder, 'ca.crt'), join(folder, 'text')];
writeFileSync(pem, '-----BEGIN CERTIFICATE-----\n');
writeFileSync(noPem, 'certificate');
afterAll(() => rmSync(folder, { recursive: true }));

const options = (env: Record<string, string>) => KafkaConfig.read(env).clientOptions();
const problems = (env: Record<string, string>): string[] => {
  try {
    KafkaConfig.read(env);
    return [];
  } catch (error) {
    return (error as ConfigError).problems;
  }
};

describe('the connection to Kafka', () => {
  it('uses neither TLS nor a login by default', () => expect(options({})).toEqual({ brokers: ['localhost:9092'], ssl: false }));

  it('uses TLS with a certificate authority and a client certificate', () =>
    expect(
      options({
        KAFKA_BROKERS: 'a:1, b:2',
        KAFKA_SECURITY_PROTOCOL: 'SSL',
        KAFKA_SSL_CA_LOCATION: pem,
        KAFKA_SSL_CERTIFICATE_LOCATION: pem,
        KAFKA_SSL_KEY_LOCATION: pem,
        KAFKA_SSL_KEY_PASSWORD: 'x',
      }),
    ).toEqual({
      brokers: ['a:1', 'b:2'],
      ssl: {
        ca: '-----BEGIN CERTIFICATE-----\n',
        cert: '-----BEGIN CERTIFICATE-----\n',
        key: '-----BEGIN CERTIFICATE-----\n',
        passphrase: 'x',
      },
    }));

  it('logs in with SCRAM unless another mechanism is configured', () =>
    expect(options({ KAFKA_SECURITY_PROTOCOL: 'sasl_plaintext', KAFKA_SASL_USERNAME: 'u', KAFKA_SASL_PASSWORD: 'p' })).toEqual({
      brokers: ['localhost:9092'],
      ssl: false,
      sasl: { mechanism: 'scram-sha-512', username: 'u', password: 'p' },
    }));

  it.each([
    [{ KAFKA_BROKERS: 'kafka' }, ['KAFKA_BROKERS must list host:port, not "kafka"']],
    [{ KAFKA_BROKERS: 'kafka:0' }, ['KAFKA_BROKERS must list host:port, not "kafka:0"']],
    [{ KAFKA_BROKERS: 'kafka:99999' }, ['KAFKA_BROKERS must list host:port, not "kafka:99999"']],
    [
      { KAFKA_SECURITY_PROTOCOL: 'sasl_ssl' },
      [
        'KAFKA_SASL_USERNAME is required where KAFKA_SECURITY_PROTOCOL is sasl_ssl',
        'KAFKA_SASL_PASSWORD is required where KAFKA_SECURITY_PROTOCOL is sasl_ssl',
      ],
    ],
    [
      { KAFKA_SECURITY_PROTOCOL: 'sasl_ssl', KAFKA_SASL_MECHANISM: 'oauthbearer', KAFKA_SASL_OAUTHBEARER_CLIENT_ID: 'c' },
      [
        'KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL is required where KAFKA_SASL_MECHANISM is oauthbearer',
        'KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET is required where KAFKA_SASL_MECHANISM is oauthbearer',
      ],
    ],
    [{ KAFKA_SASL_PASSWORD: 'p' }, ['KAFKA_SASL_PASSWORD is set, but KAFKA_SECURITY_PROTOCOL is plaintext, which does not use it']],
    [{ KAFKA_SASL_USERNAME: 'u' }, ['KAFKA_SASL_USERNAME is set, but KAFKA_SECURITY_PROTOCOL is plaintext, which does not use it']],
    [
      { KAFKA_SECURITY_PROTOCOL: 'ssl', KAFKA_SASL_USERNAME: 'u', KAFKA_SASL_OAUTHBEARER_CLIENT_ID: 'c' },
      [
        'KAFKA_SASL_USERNAME is set, but KAFKA_SECURITY_PROTOCOL is ssl, which does not use it',
        'KAFKA_SASL_OAUTHBEARER_CLIENT_ID is set, but KAFKA_SECURITY_PROTOCOL is ssl, which does not use it',
      ],
    ],
    [
      { KAFKA_SECURITY_PROTOCOL: 'ssl', KAFKA_SSL_CERTIFICATE_LOCATION: pem },
      ['KAFKA_SSL_CERTIFICATE_LOCATION and KAFKA_SSL_KEY_LOCATION must be set together'],
    ],
    [
      { KAFKA_SECURITY_PROTOCOL: 'ssl', KAFKA_SSL_CA_LOCATION: noPem },
      [`KAFKA_SSL_CA_LOCATION must be a file in PEM format, not "${noPem}"`],
    ],
  ])('is rejected with %j', (env, expected) => expect(problems(env as never)).toEqual(expected));
});

describe('OAuth tokens', () => {
  let server: Server;
  const requests: { authorization: string | undefined; body: string }[] = [];
  let answer = { status: 200, body: { access_token: 'token', expires_in: 3600 } as object };

  async function tokens(scope?: string) {
    server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        requests.push({ authorization: request.headers.authorization, body });
        response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const tokenUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`;
    return oauthTokens({ tokenUrl, clientId: 'client', clientSecret: 's:c', scope });
  }
  const close = () => new Promise((resolve) => server.close(resolve));

  it('are requested once, even by concurrent connections, and reused', async () => {
    const provider = await tokens('kafka');
    expect(await Promise.all([provider(), provider()])).toEqual([{ value: 'token' }, { value: 'token' }]);
    expect(await provider()).toEqual({ value: 'token' });
    const basic = `Basic ${Buffer.from('client:s%3Ac').toString('base64')}`;
    expect(requests).toEqual([{ authorization: basic, body: 'grant_type=client_credentials&scope=kafka' }]);
    await close();
  });

  it('are requested again when they are about to expire, and report a refusal', async () => {
    answer = { status: 200, body: { access_token: 'short', expires_in: 10 } };
    const provider = await tokens();
    expect(await provider()).toEqual({ value: 'short' });
    answer = { status: 401, body: { error: 'invalid_client' } };
    await expect(provider()).rejects.toThrow(/issued no token: 401 invalid_client/);
    await close();
  });

  it('fail as a broker that is down if their issuer is down or busy, so that services wait', async () => {
    const provider = await tokens();
    for (const status of [429, 503]) {
      answer = { status, body: {} };
      const busy = await provider().catch((error: unknown) => error);
      expect(isBrokerFailure(busy)).toBe(true);
      expect(String(busy)).toMatch(new RegExp(`127.0.0.1:\\d+ responds ${status}`));
    }
    await close();
    const down = await provider().catch((error: unknown) => error);
    expect(isBrokerFailure(down)).toBe(true);
    expect(String(down)).toMatch(/127.0.0.1:\d+ does not respond: /);
  });
});
