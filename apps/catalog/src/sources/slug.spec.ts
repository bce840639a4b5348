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
  ])('the slug of %j is %j', (name, slug) => expect(slugOf(name)).toBe(slug));

  /** The slug that is free beside these, and how often it was looked up. */
  const free = async (slugs: string[]): Promise<[string, number]> => {
    const taken = new Set(slugs);
    let lookups = 0;
    const slug = await freeSlug('a', async (asked) => (lookups++, new Set(asked.filter((each) => taken.has(each)))));
    return [slug, lookups];
  };
  const upTo = (count: number): string[] => ['a', ...Array.from({ length: count }, (_, n) => `a-${n + 1}`)];

  it.each([
    ['a', []],
    ['a-1', ['a']],
    ['a', ['a-1']],
    ['a-2', ['a', 'a-1', 'a-3']],
    ['a-64', upTo(63)],
    ['a-65', upTo(64)],
    ['a-128', upTo(127)],
    ['a-129', upTo(128)],
    ['a-20001', upTo(20_000)],
  ])('a taken slug gets the first free number, here %s', async (expected, slugs) => {
    const [slug, lookups] = await free(slugs);
    expect(slug).toBe(expected);
    expect(lookups).toBeLessThanOrEqual(4);
  });

  it('beside many with gaps gets a number that is free', async () => {
    const slugs = upTo(5000).filter((_, n) => n !== 777 && n !== 3000);
    const [slug] = await free(slugs);
    expect(slugs).not.toContain(slug);
  });
});
