import { expect, it } from '@jest/globals';
import { seal, unseal } from './idempotent-posts.js';

it('decrypts a sealed response only with the API key that sealed it', () => {
  const sealed = seal('{"key":"slk_ü"}', 'mine');
  expect(sealed).not.toContain('slk_');
  expect(Buffer.from(sealed, 'base64').toString('latin1')).not.toContain('slk_');
  expect(unseal(sealed, 'mine')).toBe('{"key":"slk_ü"}');
  expect(unseal(sealed, 'other')).toBeUndefined();
});
