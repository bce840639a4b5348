import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ExplainedError } from '../shell/explained-error.mjs';
import { inRoot } from '../shell/paths.mjs';
import { callInOwnProcess } from './own-process.mjs';

/** @type {string} */
let folder;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-test-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** @param {string} work the function that responds @param {AbortSignal} [signal] */
async function call(work, signal) {
  const module = join(folder, `${Math.random()}.mjs`);
  const paths = ['processes/own-process.mjs', 'shell/explained-error.mjs'].map((path) => inRoot('scripts', path));
  await writeFile(
    module,
    `import { respondToCaller } from '${paths[0]}'; import { ExplainedError } from '${paths[1]}'; respondToCaller(${work});`,
  );
  return callInOwnProcess(module, { n: 1 }, signal);
}

it('responds from another process', async () => {
  expect(await call('async ({ n }) => ({ n: n + 1, pid: process.pid })')).toEqual({ n: 2, pid: expect.any(Number) });
  expect(await call('async () => {}')).toBeUndefined();
});

it('fails as the module fails, and also when its process ends', async () => {
  const explained = call('async () => { throw new ExplainedError("a port is taken") }');
  await expect(explained).rejects.toThrow(ExplainedError);
  await expect(explained).rejects.toThrow('a port is taken');
  await expect(call('async () => { throw new TypeError("a bug") }')).rejects.toMatchObject({
    message: 'a bug',
    stack: expect.stringMatching(/\.mjs:1/),
  });
  await expect(call('async () => process.exit(3)')).rejects.toThrow(/ended without a response \(exit code 3\)/);
});

it('ends when nobody waits for it any more', async () => {
  const over = new AbortController();
  const called = call('async () => new Promise(() => setInterval(() => {}, 1000))', over.signal);
  setTimeout(() => over.abort(), 200);
  await expect(called).rejects.toThrow(/aborted/);
});
