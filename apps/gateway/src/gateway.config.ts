import { BadValue, Config, type DailyQuotas, integer, optional, port, quotasOf, quotaVariables, text, variable } from '#config';
import { maxEventBytes } from '#events';
import { HttpServerConfig } from '#http-server';
import { SecretsConfig } from '#secrets';
import { isMistypedKey, MISTYPED } from './accounts/api-key.js';
import { LiveConfig } from './live/live.config.js';

/** Most mail servers refuse it. */
export const DEFAULT_SENDER = 'Sluice <sluice@localhost>';

/** The gateway's part of the configuration; live streams have their own. */
export class GatewayConfig extends Config({
  host: text('SLUICE_HTTP_HOST', {
    fallback: '0.0.0.0',
    description: 'Address on which the REST API listens. With `npm start`, the default is `SLUICE_HOST`.',
  }),
  port: port('SLUICE_HTTP_PORT', { fallback: 3000, description: 'Port of the REST API.' }),
  maxBodyBytes: integer('SLUICE_MAX_BODY_BYTES', {
    fallback: 2 * 1024 * 1024,
    min: 1024,
    // most bodies become a part of one record of at most 4 MiB
    max: 3 * 1024 * 1024,
    description: 'Largest request body of the REST API, in bytes, at most 3145728 (3 MiB).',
  }),
  maxEventBytes,
  requestsPerMinute: integer('SLUICE_REQUESTS_PER_MINUTE', {
    fallback: 0,
    description: 'REST requests per minute that each gateway accepts from an account, with all its API keys; 0: unlimited.',
  }),
  smtpUrl: optional(
    variable('SLUICE_SMTP_URL', {
      secret: true,
      parse: (value) => {
        if (!/^smtps?:\/\/[^\s/]/.test(value) || !URL.canParse(value))
          throw new BadValue('must be a URL such as smtp://user:password@host:587');
        return value;
      },
      description:
        'Mail server for error mail, such as `smtp://user:password@mail.example.com:587`; without it, mail is only logged. `smtp://` with a user requires ' +
        'STARTTLS, except on this machine or with `?requireTLS=false`, which sends the password unencrypted; `smtps://` uses TLS from the start.',
    }),
  ),
  mailFrom: variable('SLUICE_MAIL_FROM', {
    fallback: DEFAULT_SENDER,
    parse: (value) => {
      if (!/^[^<>@\s]+@[^<>@\s]+$|<[^<>@\s]+@[^<>@\s]+>$/.test(value))
        throw new BadValue('must be an address such as Sluice <sluice@example.com>');
      return value;
    },
    description: 'Sender of error mail: an address that the mail server accepts. Most servers refuse the default.',
  }),
  ...quotaVariables,
}) {
  /** The daily quotas of a free account; null: unlimited. */
  get quotas(): DailyQuotas | null {
    return quotasOf(this);
  }
}

/** Only the command `account bootstrap` reads it. */
export class FirstAccountConfig extends Config({
  apiKey: optional(
    variable('SLUICE_API_KEY', {
      secret: true,
      description:
        'API key of the first account, 8 to 128 visible ASCII characters; generated at the first start where it is absent. `npm start` and Compose ignore it ' +
        'later.',
      parse: (key) => {
        if (!/^[\x21-\x7e]{8,128}$/.test(key)) throw new BadValue('must be 8 to 128 visible ASCII characters');
        if (isMistypedKey(key)) throw new BadValue(MISTYPED);
        return key;
      },
    }),
  ),
}) {}

export const settings = [GatewayConfig, HttpServerConfig, LiveConfig, SecretsConfig];
