import { describe, expect, it } from '@jest/globals';
import { FirstAccountConfig } from '../gateway.config.js';
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
  it('is refused for the first account if it has a typo, in one line that does not show it', () => {
    const key = newApiKey();
    expect(FirstAccountConfig.read({ SLUICE_API_KEY: key }).apiKey).toBe(key);
    expect(FirstAccountConfig.read({ SLUICE_API_KEY: 'my-own-test-key' }).apiKey).toBe('my-own-test-key');
    expect(() => FirstAccountConfig.read({ SLUICE_API_KEY: `${key}x` })).toThrow(
      /^SLUICE_API_KEY has our prefix slk_ but a wrong length or checksum[^\n]*$/,
    );
    expect(() => FirstAccountConfig.read({ SLUICE_API_KEY: `${key}x` })).not.toThrow(key);
  });
  it('may be one that the operator chose', () => expect(isMistypedKey('my-own-test-key')).toBe(false));
  it('is stored as its SHA-256, with a prefix that reveals nothing', () => {
    expect(apiKeyHash('abc').toString('hex')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(apiKeyPrefix(newApiKey())).toMatch(/^slk_\w{4}$/);
    expect(apiKeyPrefix('my-own-1')).toBe('my');
  });
});
