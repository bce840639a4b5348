import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import { readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { CliError, EXIT, usageError } from './errors.js';

/** The text of a file that an argument or a manifest names, without a byte order mark. Throws a usage error if it cannot be read or is not UTF-8. */
export function readText(file: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw usageError(unusable(file, 'read', error));
  }
  return utf8(bytes, file);
}

/** The bytes as text, without a byte order mark. Throws a usage error that names them if they are not UTF-8. */
export function utf8(bytes: Buffer, name: string): string {
  if (!isUtf8(bytes)) throw usageError(`${name} is not UTF-8`);
  return bytes.toString('utf8').replace(/^\ufeff/, '');
}

/** The text of a file without the line break at its end. */
export const fileText = (file: string): string => readText(file).replace(/\r?\n$/, '');

/** A secret in a file. Throws a usage error if there is none. */
export function secretIn(file: string): string {
  const secret = readText(file).trim();
  if (secret === '') throw usageError(`${file} is empty`);
  return secret;
}

/** The secret in the file or, if none is named, in a variable. An empty variable counts as none. */
export const secretFrom = (file: string | undefined, variable: string | undefined): string | undefined =>
  file === undefined ? variable || undefined : secretIn(file);

/** The codes of errors that no other argument would avoid: the disk is full, the quota of the user is used up, or the file is too large. */
const NO_SPACE = ['ENOSPC', 'EDQUOT', 'EFBIG'];

/** Calls a function that writes to the path. Throws a usage error if the path cannot be written, and a CliError if the disk is full. */
export function writeTo(path: string, write: () => void): void {
  try {
    write();
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    throw new CliError(unusable(path, 'written', error), NO_SPACE.includes(code) ? EXIT.failed : EXIT.usage);
  }
}

/**
 * Writes a file, or the one that a link leads to, as a whole: whatever ends the program, the file has its former text or the new one. Without a mode, it
 * keeps that of the file.
 */
export function replaceFile(path: string, text: string, mode?: number): void {
  const existing = statSync(path, { throwIfNoEntry: false });
  const target = existing ? realpathSync(path) : path;
  const draft = `${target}.${randomUUID()}`;
  try {
    writeFileSync(draft, text, { mode: mode ?? existing?.mode });
    renameSync(draft, target);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** Whether something other than a folder has this path: a file, or what a shell passes as one. */
export const isFile = (path: string): boolean => {
  try {
    return !statSync(path).isDirectory();
  } catch {
    return false;
  }
};

/** Whether a folder has this path. Throws a usage error if that cannot be found out, for instance for a link that leads nowhere. */
export function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    throw usageError(cannotBe('read', path, error));
  }
}

function unusable(path: string, done: 'read' | 'written', error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' && done === 'read' ? `there is no file ${path}` : cannotBe(done, path, error);
}

const cannotBe = (done: 'read' | 'written', path: string, error: unknown): string =>
  // the message ends with the system call and the path
  `${path} cannot be ${done}: ${(error as Error).message.replace(/, \w+( '.*)?$/s, '')}`;
