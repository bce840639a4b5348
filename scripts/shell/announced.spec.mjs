import { expect, test } from '@jest/globals';
import { announced } from './announced.mjs';

test('a step is announced when it begins, and again while it lasts', async () => {
  /** @type {string[]} */
  const lines = [];
  /** @type {() => void} */
  let end = () => {};
  /** @param {string} line */
  const say = (line) => {
    lines.push(line);
    if (lines.length === 3) end();
  };
  const action = () => {
    expect(lines).toEqual(['… downloading it (43 MB)']);
    return new Promise((resolve) => void (end = () => resolve('done')));
  };
  expect(await announced(say, 'downloading it', '43 MB', action, 1)).toBe('done');
  expect(lines.slice(1)).toEqual(['… still downloading it, since 0 s', '… still downloading it, since 0 s']);
});

test('an error ends the announcements and is thrown', async () => {
  const failure = new Error('no network');
  await expect(
    announced(
      () => {},
      'x',
      'y',
      () => Promise.reject(failure),
    ),
  ).rejects.toBe(failure);
});
