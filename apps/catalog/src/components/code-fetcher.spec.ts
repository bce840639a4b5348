import { describe, expect, it } from '@jest/globals';
import { rawUrl } from './remote-code.js';

describe('rawUrl', () => {
  it.each([
    ['https://github.com/ORG/REPO/blob/main/sources/a.js', 'https://raw.githubusercontent.com/ORG/REPO/main/sources/a.js'],
    ['https://github.com/ORG/REPO/tree/main/sources', 'https://github.com/ORG/REPO/tree/main/sources'],
    ['https://example.com/ORG/REPO/blob/main/a.js', 'https://example.com/ORG/REPO/blob/main/a.js'],
  ])('of %s', (url, raw) => expect(rawUrl(new URL(url)).href).toBe(raw));
});
