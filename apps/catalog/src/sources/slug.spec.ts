import { describe, expect, it } from '@jest/globals';
import { freeSlug, slugOf } from './source.entity.js';

describe('a slug', () => {
  it.each([
    ['My Source', 'my-source'],
    ['  --Hello, World!--  ', 'hello-world'],
    ['ÄÖÜ', 'source'],
    ['', 'source'],
    ['a__b', 'a-b'],
    ['RSS 2.0', 'rss-2-0'],
  ])('of %j is %j', (name, slug) => expect(slugOf(name)).toBe(slug));

  it('that is taken gets the first free number', () => {
    expect(freeSlug('a', new Set())).toBe('a');
    expect(freeSlug('a', new Set(['a']))).toBe('a-1');
    expect(freeSlug('a', new Set(['a', 'a-1', 'a-3']))).toBe('a-2');
  });
});
