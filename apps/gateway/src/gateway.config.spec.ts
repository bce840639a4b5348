import { describe, expect, it } from '@jest/globals';
import { GatewayConfig } from './gateway.config.js';
import { LiveConfig } from './live/live.config.js';

const read = (smtpUrl: string) => GatewayConfig.read({ SLUICE_SMTP_URL: smtpUrl });

describe('the mail server', () => {
  it.each(['smtp://user:password@mail.example.com:587', 'smtps://mail.example.com', 'smtp://[::1]:25', 'smtp://mail'])(
    'can be %s',
    (url) => {
      expect(read(url).smtpUrl).toBe(url);
    },
  );

  it.each(['mail.example.com:587', 'mail.example.com', 'x y', 'http://mail.example.com', 'smtp://', 'smtp://mail:port'])(
    'cannot be %s, which is reported at start',
    (url) => {
      expect(() => read(url)).toThrow('SLUICE_SMTP_URL must be a URL such as smtp://user:password@host:587');
    },
  );
});

describe('the sender of mail', () => {
  const sender = (from: string) => GatewayConfig.read({ SLUICE_MAIL_FROM: from }).mailFrom;

  it.each(['alerts@example.com', 'Sluice <sluice@localhost>', '"Doe, Ada" <ada@example.com>', '<ada@example.com>'])('can be %s', (from) => {
    expect(sender(from)).toBe(from);
  });

  it.each(['alerts', 'Alerts <alerts>', 'a@example.com, b@example.com', 'Ada ada@example.com', '<a@example.com> Ada'])(
    'cannot be %s, which is reported at start',
    (from) => {
      expect(() => sender(from)).toThrow('SLUICE_MAIL_FROM must be an address such as Sluice <sluice@example.com>');
    },
  );
});

it('refuses a heartbeat that is so slow that clients would take their connections for dead', () => {
  expect(LiveConfig.read({ SLUICE_SSE_HEARTBEAT_MS: '30000' }).heartbeatMs).toBe(30_000);
  expect(() => LiveConfig.read({ SLUICE_SSE_HEARTBEAT_MS: '30001' })).toThrow('SLUICE_SSE_HEARTBEAT_MS must be a whole number from 10');
});
it('refuses a limit of bodies that no record could contain', () => {
  expect(GatewayConfig.read({ SLUICE_MAX_BODY_BYTES: '3145728' }).maxBodyBytes).toBe(3 * 1024 * 1024);
  expect(() => GatewayConfig.read({ SLUICE_MAX_BODY_BYTES: '3145729' })).toThrow('SLUICE_MAX_BODY_BYTES must be a whole number from 1024');
});
