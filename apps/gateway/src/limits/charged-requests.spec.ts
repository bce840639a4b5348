import { expect, it } from '@jest/globals';
import { globSync, readFileSync } from 'node:fs';

it('only a request whose reply all callers share names no account, which would be charged for it', () => {
  const root = new URL('..', import.meta.url).pathname;
  const files = globSync('**/*.ts', { cwd: root }).filter((file) => !/spec\.ts$|-for-tests\.ts$/.test(file));
  const texts = files.map((file) => ({ file, text: readFileSync(`${root}/${file}`, 'utf8') }));
  const anonymous = texts.filter(({ text }) => /\baccount: null\b/.test(text)).map(({ file }) => file);
  expect(anonymous).toEqual(['live/store-positions.ts']);
});
