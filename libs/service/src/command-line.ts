import type { Command } from 'commander';
import { explain } from './explain.js';

/** A command with what it has opened. */
export interface OpenCommand {
  program: Command;
  close(): Promise<void>;
}

/** Runs a command of the command line. What it throws is printed on standard error, in one line where its reader can cure it; exit code 1. */
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
