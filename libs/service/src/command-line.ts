import type { Command } from 'commander';
import { explain } from './explain.js';

/** A command with its resources. */
export interface OpenCommand {
  program: Command;
  close(): Promise<void>;
}

/** Runs a command-line command. Prints an error on standard error, as one line if the reader can fix the cause, and exits with code 1. */
export async function runCommand(open: () => OpenCommand | Promise<OpenCommand>): Promise<void> {
  let command: OpenCommand | undefined;
  try {
    command = await open();
    await command.program.parseAsync();
  } catch (error) {
    console.error(explain(error)?.join('\n') ?? error);
    process.exitCode = 1;
  } finally {
    await command?.close();
  }
}
