import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { JailCommand } from './jail.js';

/**
 * @param output what the program's standard output is for
 * @param channel what its descriptor 3 is
 */
export function startInJail(command: JailCommand, output: 'pipe' | 'ignore', channel: 'pipe' | 'ignore'): ChildProcess {
  const descriptors = command.descriptorFiles.map((file) => openSync(file, 'r'));
  try {
    return spawn(command.file, command.args, { env: command.env, cwd: '/', stdio: ['ignore', output, 'pipe', channel, ...descriptors] });
  } finally {
    for (const descriptor of descriptors) closeSync(descriptor);
  }
}
