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
  write(file, given || generate());
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
 * Writes all or nothing, because half a secret would be kept. The mode is set separately because the umask restricts the mode of a new file.
 * @param {string} file
 * @param {string} secret
 */
function write(file, secret) {
  const draft = `${file}.new`;
  rmSync(draft, { force: true });
  writeFileSync(draft, `${secret}\n`, { mode: 0o400 });
  chmodSync(draft, 0o440);
  renameSync(draft, file);
}

/**
 * Writes a file that only its owner can read.
 * @param {string} file
 * @param {string} text
 */
export function writeSecret(file, text) {
  writeFileSync(file, `${text}\n`, { mode: 0o600 });
  // The mode above applies to a new file only.
  chmodSync(file, 0o600);
}
