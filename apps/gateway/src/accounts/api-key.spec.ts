import { describe, expect, it } from '@jest/globals';
import { apiKeyHash, apiKeyPrefix, isMistypedKey, newApiKey } from './api-key.js';

describe('an API key', () => {
  it('has our prefix, base-62 digits and a checksum that finds typos', () => {
    const key = newApiKey();
    expect(key).toMatch(/^slk_[0-9A-Za-z]{38}$/);
    expect(isMistypedKey(key)).toBe(false);
    for (let at = 4; at < key.length; at++) {
      const other = key[at] === 'x' ? 'y' : 'x';
      expect(isMistypedKey(key.slice(0, at) + other + key.slice(at + 1))).toBe(true);
    }
    expect(isMistypedKey(`${key}0`)).toBe(true);
  });
  it('may be one that the operator chose', () => expect(isMistypedKey('my-own-test-key')).toBe(false));
  it('is kept as its SHA-256, with a prefix that reveals nothing', () => {
    expect(apiKeyHash('abc').toString('hex')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(apiKeyPrefix(newApiKey())).toMatch(/^slk_\w{4}$/);
    expect(apiKeyPrefix('my-own-1')).toBe('my');
  });
});
