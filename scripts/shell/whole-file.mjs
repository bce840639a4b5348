import { chmodSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { ExplainedError } from './explained-error.mjs';

/**
 * Writes a file as a whole or not at all: a reader never sees a part of it, and a full disk leaves no part behind. The mode is set separately because the umask
 * restricts the mode of a new file.
 *
 * @param {string} file
 * @param {string} text
 * @param {{ mode: number, draft?: string }} options draft: the file that is written first and then renamed
 * @throws {ExplainedError} naming the file, if it cannot be written
 */
export function writeWhole(file, text, { mode, draft = `${file}.new` }) {
  try {
    rmSync(draft, { force: true });
    writeFileSync(draft, text, { mode: 0o400 });
    chmodSync(draft, mode);
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    throw new ExplainedError(`${file} cannot be written: ${/** @type {Error} */ (error).message}.`);
  }
}
