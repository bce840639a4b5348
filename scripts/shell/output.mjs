import { constants, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { WriteStream } from 'node:tty';

/** @typedef {import('node:stream').Writable} Output */

/** Characters that wait in memory for a terminal or a pipe. */
const LIMIT = 1_000_000;
const FLUSH_MS = 1000;

/**
 * Standard output, but without waiting for a terminal. Node waits for each write to one: if it takes no output (Ctrl-S, a hung ssh), this process could neither be
 * stopped nor restart a service.
 * @returns {Output}
 */
export function standardOutput() {
  const terminal = process.stdout.isTTY ? openTerminal() : undefined;
  const output = terminal ?? process.stdout;
  // the terminal, or the program that reads this output, may end first
  output.on('error', () => {});
  return output;
}

/** Opens the terminal again: a process that inherits descriptor 1 may switch it to blocking writes. */
function openTerminal() {
  try {
    const terminal = new WriteStream(openSync('/dev/stdout', constants.O_WRONLY | constants.O_NOCTTY));
    /** @type {any} */ (terminal)._handle.setBlocking(false);
    return terminal;
  } catch {
    // it belongs to another user
    return undefined;
  }
}

/**
 * Prints lines. While too much waits for the reader of the output, lines are left out, and their number is printed once it has read what waited.
 * @param {Output} output
 * @param {number} [limit] more than the output's high-water mark: otherwise it emits no `drain`
 * @returns {(line: string) => void}
 */
export function printer(output, limit = LIMIT) {
  let leftOut = 0;
  return (line) => {
    if (leftOut === 0 && output.writableLength <= limit) return void output.write(`${line}\n`);
    if (leftOut++ > 0) return;
    output.once('drain', () => {
      output.write(`… lines left out, because this output was not read: ${leftOut}\n`);
      leftOut = 0;
    });
  };
}

/**
 * Waits until the outputs are written: an exit drops the rest. A reader that takes nothing is not waited for.
 * @param {Output[]} outputs
 */
export async function flush(outputs, withinMs = FLUSH_MS) {
  const written = outputs.map((output) => new Promise((resolve) => output.write('', resolve)));
  await Promise.race([Promise.all(written), sleep(withinMs)]);
}
