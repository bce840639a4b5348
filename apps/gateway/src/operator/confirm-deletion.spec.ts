import { PassThrough } from 'node:stream';
import { afterEach, expect, it } from '@jest/globals';
import { confirmDeletion } from './confirm-deletion.js';

afterEach(() => void (process.exitCode = undefined));

/** Asks, and types this. Returns the result, the exit code, and what the terminal shows after the question. */
async function ask(typed: string) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const result = confirmDeletion({ input, output }, 'Delete it? ');
  input.write(typed);
  return { result: await result, code: process.exitCode, shown: String(output.read()).split('Delete it? ').at(-1) };
}

it.each([
  ['Ctrl-C', '\u0003', 130],
  ['Ctrl-D', '\u0004', 130],
  ['no', 'no\r', 1],
])('%s at the question deletes nothing, and the command exits with an error', async (_, typed, code) => {
  expect(await ask(typed)).toEqual({ result: false, code, shown: expect.stringMatching(/\nnothing was deleted\n$/) });
});

it('"yes" at the question confirms the deletion, and the command continues', async () => {
  expect(await ask('yes\r')).toMatchObject({ result: true, code: undefined });
});
