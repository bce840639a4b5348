import { type Command, CommanderError } from 'commander';
import { explain } from './explain.js';
import { printable } from './printable.js';

/** A command with its resources. */
export interface OpenCommand {
  program: Command;
  close(): Promise<void>;
}

export const WRONG_USAGE = 2;

/**
 * Runs a command-line command and ends the process. Prints an error on standard error, as one line if the reader can fix the cause, and exits with code 1,
 * or with 2 if the arguments are wrong.
 */
export async function runCommand(open: () => OpenCommand | Promise<OpenCommand>): Promise<void> {
  let command: OpenCommand | undefined;
  try {
    command = await open();
    prepare(command.program);
    await command.program.parseAsync();
  } catch (error) {
    if (error instanceof CommanderError) {
      // commander has printed the usage
      process.exitCode = error.exitCode === 0 ? 0 : WRONG_USAGE;
    } else reportFailure(error);
  } finally {
    await command?.close();
  }
  // a request to a broker that hangs would keep the process for minutes
  for (const stream of [process.stdout, process.stderr]) await new Promise<void>((done) => stream.write('', () => done()));
  process.exit();
}

/** Prints why a command fails on standard error: as lines if the reader can fix the cause, otherwise with the stack. Sets the exit code 1. */
export function reportFailure(error: unknown): void {
  const lines = explain(error)?.join('\n');
  console.error(lines === undefined ? error : printable(lines));
  process.exitCode = 1;
}

function prepare(command: Command): void {
  command.exitOverride();
  // its messages repeat arguments
  command.configureOutput({ outputError: (text, write) => write(printable(text)) });
  command.commands.forEach(prepare);
}
