import { expect, test } from '@jest/globals';
import { explain } from './explained-error.mjs';

test('an error of the file system is printed without its stack', () => {
  const message = "ENOSPC: no space left on device, mkdir '/data/apps'";
  expect(explain(Object.assign(new Error(message), { code: 'ENOSPC' }))).toBe(message);
});

test('a bug is printed with its stack', () => {
  expect(explain(new TypeError('x is undefined'))).toContain('explained-error.spec.mjs');
});
