import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

// Services often start with a short PATH; setpriv and prlimit may be in either place
const usual = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** The absolute path of a program, or null. Absolute, so that a process can be started with an empty environment. */
export function findProgram(name: string): string | null {
  for (const dir of [...(process.env.PATH ?? '').split(delimiter), ...usual]) {
    if (!dir.startsWith('/')) continue;
    const file = join(dir, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      continue;
    }
  }
  return null;
}
