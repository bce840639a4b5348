import { findProgram } from './find-program.js';

/** As root, every rung first changes to a user that no other process has; an ordinary user is not changed. */
export function changeUser(uid: number): string[] {
  return process.getuid?.() === 0 ? [findProgram('setpriv') ?? 'setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'] : [];
}
