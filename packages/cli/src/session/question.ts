import { openSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { WriteStream } from 'node:tty';
import { CliError, EXIT, usageError } from './errors.js';

interface Terminal {
  input: NodeJS.ReadableStream;
  output: NodeJS.WritableStream;
}

/** Asks for a line on a terminal. Throws a CliError if Ctrl-C or Ctrl-D is typed instead. @param hidden does not show what is typed */
export async function askOn({ input, output }: Terminal, question: string, { hidden = false } = {}): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output: hidden ? silent : output, terminal: true });
  if (hidden) output.write(question);
  try {
    // readline draws the line again when it begins to ask: a question that it does not know would disappear
    return (await lines.question(hidden ? '' : question)).trim();
  } catch (error) {
    if ((error as Error).name !== 'AbortError') throw error;
    // what follows must not be in the line of the question
    if (!hidden) output.write('\n');
    throw new CliError('cancelled', EXIT.interrupted);
  } finally {
    lines.close();
    if (hidden) output.write('\n');
  }
}

/** The terminal itself, for a question while standard error goes elsewhere. Throws a usage error if it cannot be opened, as on Windows. */
export function openTerminal(): WriteStream {
  try {
    return new WriteStream(openSync('/dev/tty', 'w'));
  } catch {
    throw usageError('a question cannot be shown, because standard error is not a terminal');
  }
}
