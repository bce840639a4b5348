import { describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { isSealed, SecretBox, SecretsKeyProblem } from './secret-box.js';
import { SecretsConfig } from './secrets.config.js';

const [older, newer] = [randomBytes(32), randomBytes(32)];

describe('a sealed text', () => {
  const box = new SecretBox([newer, older]);

  it('opens in its context, and is never the same twice', () => {
    const sealed = box.seal('ä secret', 'source dc_1');
    expect(isSealed(sealed)).toBe(true);
    expect(sealed).not.toContain('secret dc');
    expect(box.open(sealed, 'source dc_1')).toBe('ä secret');
    expect(box.seal('ä secret', 'source dc_1')).not.toBe(sealed);
  });

  it('does not open in another context', () => {
    expect(() => box.open(box.seal('x', 'source dc_1'), 'source dc_2')).toThrow(SecretsKeyProblem);
  });

  it.each([
    ['changed', (text: string) => `${text.slice(0, -4)}AAAA`],
    ['cut', (text: string) => text.slice(0, -4)],
    ['without its tag', (text: string) => text.slice(0, 30)],
    ['empty', () => 'sealed'],
  ])('does not open when it was %s', (_, change) => {
    expect(() => box.open(change(box.seal('some secret', 'p')), 'p')).toThrow(SecretsKeyProblem);
  });

  it('opens under every key of the list, and is current only under the first', () => {
    const old = new SecretBox([older]).seal('x', 'p');
    expect(box.open(old, 'p')).toBe('x');
    expect(box.isCurrent(old)).toBe(false);
    expect(box.isCurrent(box.seal('x', 'p'))).toBe(true);
  });

  it('names the key that is missing, in one line', () => {
    const sealed = box.seal('x', 'p');
    expect(() => new SecretBox([older]).open(sealed, 'p')).toThrow(/^SLUICE_SECRETS_KEY does not contain the key [0-9a-f]{8}, .*$/);
  });
});

describe('a signature', () => {
  const text = Buffer.from('{"a":1}');
  const box = new SecretBox([newer, older]);

  it('is valid for its text, in its context, under every key of the list', () => {
    expect(box.verifies(box.sign(text, 'deletion dc_1'), text, 'deletion dc_1')).toBe(true);
    expect(box.verifies(new SecretBox([older]).sign(text, 'deletion dc_1'), text, 'deletion dc_1')).toBe(true);
  });

  it('is valid for a process that does not have the newest key yet, or has the old one no longer', () => {
    expect(new SecretBox([older]).verifies(box.sign(text, 'p'), text, 'p')).toBe(true);
    expect(new SecretBox([newer]).verifies(box.sign(text, 'p'), text, 'p')).toBe(true);
  });

  it.each<[string, string, Buffer, string]>([
    ['another text', box.sign(text, 'p'), Buffer.from('{}'), 'p'],
    ['another context', box.sign(text, 'p'), text, 'q'],
    ['a context that ends elsewhere', box.sign(Buffer.from('bc'), 'a'), Buffer.from('c'), 'ab'],
    ['an unknown key', new SecretBox([randomBytes(32)]).sign(text, 'p'), text, 'p'],
    ['a short digest', new SecretBox([newer]).sign(text, 'p').slice(0, -6), text, 'p'],
    ['no signature', '', text, 'p'],
  ])('is not valid for %s', (_, signature, signed, context) => expect(box.verifies(signature, signed, context)).toBe(false));
});

describe('SLUICE_SECRETS_KEY', () => {
  it('takes hex, base64 and base64url, as a list', () => {
    const text = [newer.toString('hex'), ` ${older.toString('base64')}`, older.toString('base64url')].join(',');
    expect(SecretsConfig.read({ SLUICE_SECRETS_KEY: text }).keys).toEqual([newer, older, older]);
  });

  it.each(['', 'short', newer.toString('hex').slice(2), `${newer.toString('base64')},`])(
    'does not take %j, and does not print it',
    (text) => {
      expect(() => SecretsConfig.read({ SLUICE_SECRETS_KEY: text })).toThrow(
        /^SLUICE_SECRETS_KEY (is required|must be 32 bytes as base64, base64url or hex, or a comma-separated list of such keys)$/,
      );
    },
  );
});
