import { expect, it } from '@jest/globals';
import { PassThrough } from 'node:stream';
import { askOn } from './question.js';

/** Asks, and types this. Returns the response and what the terminal shows in its last line before the response is typed. */
async function ask(hidden: boolean): Promise<{ response: string; shown: string; after: string }> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const written = () => String(output.read() ?? '');
  const response = askOn({ input, output }, 'Delete it? [y/N] ', { hidden });
  await new Promise((resolve) => setImmediate(resolve));
  // what follows the last "clear from here to the end"
  const shown = written().split('\u001b[0J').at(-1)!;
  input.write('yes\r');
  return { response: await response, shown, after: written() };
}

it('a question stays on the terminal while it waits for the response, and the response is shown', async () => {
  const { response, shown, after } = await ask(false);
  expect([response, shown]).toEqual(['yes', expect.stringContaining('Delete it? [y/N] ')]);
  expect(after).toContain('yes');
});

it('a hidden question is shown, and the response to it is not', async () => {
  expect(await ask(true)).toEqual({ response: 'yes', shown: 'Delete it? [y/N] ', after: '\n' });
});

it.each([
  ['Ctrl-C', '\u0003'],
  ['Ctrl-D', '\u0004'],
])('%s at a question ends the command as Ctrl-C does elsewhere', async (_, key) => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const response = askOn({ input, output }, 'Delete it? [y/N] ');
  input.write(key);
  await expect(response).rejects.toMatchObject({ name: 'CliError', message: 'cancelled', code: 130 });
});
