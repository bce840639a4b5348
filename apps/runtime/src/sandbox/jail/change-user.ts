import { findProgram } from './find-program.js';

/** As root, every rung begins by becoming a user that nobody else is; an ordinary user stays who he is. */
export function changeUser(uid: number): string[] {
  return process.getuid?.() === 0 ? [findProgram('setpriv') ?? 'setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'] : [];
}
