import { describe, expect, it } from '@jest/globals';
import { GatewayConfig } from './gateway.config.js';

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
