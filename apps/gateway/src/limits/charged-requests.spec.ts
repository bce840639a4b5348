import { expect, it } from '@jest/globals';
import { globSync, readFileSync } from 'node:fs';

it('each request to another service is charged to the account of its caller, except one whose reply all callers share', () => {
  const root = new URL('..', import.meta.url).pathname;
  const files = globSync('**/*.ts', { cwd: root }).filter((file) => !/spec\.ts$|-for-tests\.ts$/.test(file));
  const texts = files.map((file) => ({ file, text: readFileSync(`${root}/${file}`, 'utf8') }));
  const naming = (options: RegExp) => texts.filter(({ text }) => options.test(text)).map(({ file }) => file);
  expect(naming(/\baccount: (owner|ownerId|owner_id)\b/)).toContain('components/registry.controller.ts');
  expect(naming(/\baccount: null\b/)).toEqual(['live/store-positions.ts']);
});
