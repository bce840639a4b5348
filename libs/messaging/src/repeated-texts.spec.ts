import { describe, expect, it } from '@jest/globals';
import { seededRandom } from '#testing';
import { RepeatedTexts } from './repeated-texts.js';

const decode = (texts: RepeatedTexts, bytes: Buffer): string => {
  const around = Buffer.concat([Buffer.from('<<'), bytes, Buffer.from('>>')]);
  return texts.decode(around, 2, 2 + bytes.length);
};

describe('texts that may be repeated', () => {
  it.each([
    ['nothing', ''],
    ['a name', 'content-type'],
    ['the longest that is remembered', 'x'.repeat(40)],
    ['a longer one', 'x'.repeat(41)],
    ['other letters', 'é漢😀'],
    ['control characters', '\0\n\x7f'],
  ])('are decoded, the second time, too: %s', (_, text) => {
    const texts = new RepeatedTexts();
    expect([1, 2].map(() => decode(texts, Buffer.from(text)))).toEqual([text, text]);
  });

  it('have replacements for what is not UTF-8', () => {
    const texts = new RepeatedTexts();
    const bytes = Buffer.from([0x61, 0xff, 0x62]);
    expect([1, 2].map(() => decode(texts, bytes))).toEqual(['a\uFFFDb', 'a\uFFFDb']);
  });

  it('are not taken for others that have the same hash', () => {
    // 31 * 'A' + 'a' = 31 * 'B' + 'B'
    const texts = new RepeatedTexts();
    const same = ['Aa', 'BB', 'AaBB', 'BBAa', 'Aa', 'BB'];
    expect(same.map((text) => decode(texts, Buffer.from(text)))).toEqual(same);
  });

  it('are decoded whatever was decoded before', () => {
    const random = seededRandom(7);
    const texts = new RepeatedTexts();
    const samples = Array.from({ length: 20_000 }, () => 'n'.repeat(random() * 30) + Math.floor(random() * 3000).toString(36));
    expect(samples.map((text) => decode(texts, Buffer.from(text)))).toEqual(samples);
  });
});
