import { chmodSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/**
 * Makes sure that a file contains a secret. A given value takes precedence; otherwise the file keeps its value, and a new value is generated only once.
 *
 * @param {string} file readable by its owner and group only
 * @param {{ given: string | undefined, generate: () => string }} options an empty `given` counts as none
 * @returns {'created' | 'replaced' | 'kept'}
 */
export function keepSecret(file, { given, generate }) {
  const kept = read(file);
  if (kept !== undefined && (!given || given === kept)) return 'kept';
  writeWhole(file, given || generate(), 0o440);
  return kept === undefined ? 'created' : 'replaced';
}

/**
 * @param {string} file
 * @returns {string | undefined} undefined if the file contains no secret
 */
function read(file) {
  try {
    return readFileSync(file, 'utf8').replace(/\n$/, '') || undefined;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Writes a file that only its owner can read.
 * @param {string} file
 * @param {string} text
 */
export function writeSecret(file, text) {
  writeWhole(file, text, 0o600);
}

/**
 * Writes all or nothing, because half a secret would be kept. The mode is set separately because the umask restricts the mode of a new file.
 * @param {string} file
 * @param {string} text
 * @param {number} mode
 */
function writeWhole(file, text, mode) {
  const draft = `${file}.new`;
  rmSync(draft, { force: true });
  writeFileSync(draft, `${text}\n`, { mode: 0o400 });
  chmodSync(draft, mode);
  renameSync(draft, file);
}
