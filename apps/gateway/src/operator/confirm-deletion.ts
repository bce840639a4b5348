import { createInterface } from 'node:readline/promises';

interface Terminal {
  input: NodeJS.ReadableStream;
  output: NodeJS.WritableStream;
}

/** As a shell reports a command that Ctrl-C has ended. */
const INTERRUPTED = 130;

/** Asks whether to delete. Unless the operator types "yes", prints that nothing was deleted and sets the exit code: 130 after Ctrl-C or Ctrl-D, otherwise 1. */
export async function confirmDeletion({ input, output }: Terminal, question: string): Promise<boolean> {
  const lines = createInterface({ input, output, terminal: true });
  try {
    if ((await lines.question(question)).trim() === 'yes') return true;
    process.exitCode = 1;
  } catch (error) {
    if ((error as Error).name !== 'AbortError') throw error;
    // the next line must not begin in that of the question
    output.write('\n');
    process.exitCode = INTERRUPTED;
  } finally {
    lines.close();
  }
  output.write('nothing was deleted\n');
  return false;
}
