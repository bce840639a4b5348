import { readFileSync } from 'node:fs';
import type { KafkaConfig as ClientConfig, SASLOptions } from 'kafkajs';
import { BadValue, choice, Config, optional, storeVariables, text, variable } from '#config';
import { oauthTokens } from './oauth-tokens.js';

/** A PEM file, read once at start. */
const pemFile = (name: string, description: string) =>
  optional(
    variable(name, {
      description,
      parse: (path) => {
        let pem: string;
        try {
          pem = readFileSync(path, 'utf8');
        } catch (error) {
          throw new BadValue(`cannot be read: ${(error as Error).message}`);
        }
        if (!pem.includes('-----BEGIN ')) throw new BadValue('must be a file in PEM format');
        return pem;
      },
    }),
  );

/** How the services connect to Kafka. The variables are named like the properties of Kafka's own clients. */
export class KafkaConfig extends Config({
  brokers: storeVariables.kafkaBrokers,
  securityProtocol: choice('KAFKA_SECURITY_PROTOCOL', {
    words: ['plaintext', 'ssl', 'sasl_plaintext', 'sasl_ssl'],
    fallback: 'plaintext',
    description: 'Whether connections to Kafka use TLS (`ssl`), a login (`sasl_plaintext`), both (`sasl_ssl`) or neither.',
  }),
  saslMechanism: choice('KAFKA_SASL_MECHANISM', {
    words: ['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer'],
    fallback: 'scram-sha-512',
    description: 'How to log in to Kafka.',
  }),
  username: optional(text('KAFKA_SASL_USERNAME', { description: 'User for the mechanisms `plain` and `scram-…`.' })),
  password: optional(text('KAFKA_SASL_PASSWORD', { secret: true, description: 'Its password.' })),
  tokenUrl: optional(
    variable('KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL', {
      description: 'For `oauthbearer`: where tokens are issued by the OAuth 2.0 client credentials grant.',
      parse: (value) => {
        if (!/^https?:\/\//.test(value) || !URL.canParse(value)) throw new BadValue('must be an http or https URL');
        return value;
      },
    }),
  ),
  clientId: optional(text('KAFKA_SASL_OAUTHBEARER_CLIENT_ID', { description: 'For `oauthbearer`: the client id.' })),
  clientSecret: optional(
    text('KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET', { secret: true, description: 'For `oauthbearer`: the client secret.' }),
  ),
  scope: optional(text('KAFKA_SASL_OAUTHBEARER_SCOPE', { description: 'For `oauthbearer`: the scope of the token.' })),
  ca: pemFile(
    'KAFKA_SSL_CA_LOCATION',
    'File with the certificates (PEM) of the authorities that may sign the brokers’ certificates; default: the public ones.',
  ),
  certificate: pemFile('KAFKA_SSL_CERTIFICATE_LOCATION', 'File with the client certificate (PEM), where the brokers ask for one.'),
  key: pemFile('KAFKA_SSL_KEY_LOCATION', 'File with its private key (PEM).'),
  keyPassword: optional(text('KAFKA_SSL_KEY_PASSWORD', { secret: true, description: 'Password of the private key.' })),
}) {
  private get usesTls(): boolean {
    return this.securityProtocol === 'ssl' || this.securityProtocol === 'sasl_ssl';
  }

  private get usesSasl(): boolean {
    return this.securityProtocol.startsWith('sasl_');
  }

  problems(): string[] {
    const problems: string[] = [];
    const required = (names: Record<string, string | undefined>, reason: string) => {
      for (const [name, value] of Object.entries(names)) if (value === undefined) problems.push(`${name} is required ${reason}`);
    };
    if (this.usesSasl && this.saslMechanism === 'oauthbearer')
      required(
        {
          KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL: this.tokenUrl,
          KAFKA_SASL_OAUTHBEARER_CLIENT_ID: this.clientId,
          KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET: this.clientSecret,
        },
        'where KAFKA_SASL_MECHANISM is oauthbearer',
      );
    else if (this.usesSasl)
      required(
        { KAFKA_SASL_USERNAME: this.username, KAFKA_SASL_PASSWORD: this.password },
        `where KAFKA_SECURITY_PROTOCOL is ${this.securityProtocol}`,
      );
    if ((this.certificate === undefined) !== (this.key === undefined))
      problems.push('KAFKA_SSL_CERTIFICATE_LOCATION and KAFKA_SSL_KEY_LOCATION must be set together');
    // an operator would believe that an unused credential protects something
    const unused = {
      ...(!this.usesSasl && {
        KAFKA_SASL_USERNAME: this.username,
        KAFKA_SASL_PASSWORD: this.password,
        KAFKA_SASL_OAUTHBEARER_CLIENT_ID: this.clientId,
        KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET: this.clientSecret,
      }),
      ...(!this.usesTls && { KAFKA_SSL_CA_LOCATION: this.ca }),
    };
    for (const [name, value] of Object.entries(unused))
      if (value !== undefined)
        problems.push(`${name} is set, but KAFKA_SECURITY_PROTOCOL is ${this.securityProtocol}, which does not use it`);
    return problems;
  }

  /** The connection settings in the client's options. */
  clientOptions(): Pick<ClientConfig, 'brokers' | 'ssl' | 'sasl'> {
    return {
      brokers: this.brokers,
      ssl: this.usesTls && { ca: this.ca, cert: this.certificate, key: this.key, passphrase: this.keyPassword },
      ...(this.usesSasl ? { sasl: this.sasl() } : {}),
    };
  }

  private sasl(): SASLOptions {
    const { saslMechanism: mechanism, username = '', password = '' } = this;
    if (mechanism !== 'oauthbearer') return { mechanism, username, password };
    const { tokenUrl = '', clientId = '', clientSecret = '', scope } = this;
    return { mechanism, oauthBearerProvider: oauthTokens({ tokenUrl, clientId, clientSecret, scope }) };
  }
}
