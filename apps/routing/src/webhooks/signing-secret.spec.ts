import { createHmac } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { SigningKey } from './signing-secret.js';

it.each([0, 24, 32, 63, 64, 65, 131])('a key of %i bytes makes the same HMAC as the one of Node', (length) => {
  const secret = Buffer.from(Array.from({ length }, (_, index) => (index * 37) % 256));
  const key = new SigningKey(secret);
  for (const text of ['', 'a', 'é'.repeat(100_000), 'a']) {
    expect(key.sign(Buffer.from('id.1.'), Buffer.from(text))).toBe(createHmac('sha256', secret).update(`id.1.${text}`).digest('base64'));
  }
});
