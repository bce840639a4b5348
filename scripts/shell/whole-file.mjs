import { chmodSync, closeSync, existsSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ExplainedError } from './explained-error.mjs';

/**
 * Writes a file as a whole or not at all: a reader never sees a part of it, and a full disk leaves no part behind. The mode is set separately because the umask
 * restricts the mode of a new file. Several processes may write the same file.
 *
 * @param {string} file
 * @param {string | Uint8Array} content
 * @param {{ mode: number, durable?: boolean }} options durable: the file survives a power failure right afterwards, which could otherwise leave it empty
 * @throws {ExplainedError} naming the file, if it cannot be written
 */
export function writeWhole(file, content, { mode, durable = false }) {
  const draft = `${file}.${process.pid}.draft`;
  try {
    rmSync(draft, { force: true });
    writeFileSync(draft, content, { mode: 0o400, flush: durable });
    chmodSync(draft, mode);
    renameSync(draft, file);
    if (durable) flushFolder(dirname(file));
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    throw new ExplainedError(`${file} cannot be written: ${/** @type {Error} */ (error).message}.`);
  }
}

/**
 * Removes the parts of files in a folder that processes left behind because they were killed. No other process may be writing to the folder.
 * @param {string} folder
 */
export function removeDrafts(folder) {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) if (/\.\d+\.draft$/.test(name)) rmSync(join(folder, name), { force: true });
}

/** @param {string} folder */
function flushFolder(folder) {
  try {
    const fd = openSync(folder, 'r');
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  } catch {
    // The folder cannot be listed, or its file system does not flush folders.
  }
}
