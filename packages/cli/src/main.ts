import { CommanderError } from 'commander';
import { program } from './program.js';
import { EXIT, exitCodeOf, explain } from './session/errors.js';
import { styled, written } from './session/output.js';

// as in package.json; before, styleText also coloured what goes to a file or a pipe
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 8)) {
  process.stderr.write(`sluice: Node 22.8 or newer is required; this is Node ${process.versions.node}\n`);
  process.exit(EXIT.failed);
}

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // the reader of a pipe has ended, as in `sluice apply … | head`: a command does the rest of its work without output
  if (error.code === 'EPIPE') return;
  process.stderr.write(`sluice: standard output cannot be written: ${error.message}\n`);
  process.exit(EXIT.failed);
});

// nothing can report that standard error cannot be written
process.stderr.on('error', () => {});

// as a shell reports a process that Ctrl-C has ended
process.once('SIGINT', () => process.exit(EXIT.interrupted));

try {
  await program().parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // commander has printed the usage
    process.exitCode = error.exitCode === 0 ? 0 : EXIT.usage;
  } else {
    process.stderr.write(`${styled('red', `sluice: ${explain(error)}`, process.stderr)}\n`);
    process.exitCode = exitCodeOf(error);
    // an exit drops what a slow reader of a pipe has not read yet
    await Promise.all([written(process.stdout), written(process.stderr)]);
    // live streams and watchers of other parts of the command may still be open
    process.exit();
  }
}
