import { readFileSync } from 'node:fs';
import { writeWhole } from './whole-file.mjs';

/**
 * Makes sure that a file contains a secret, also after a power failure: data that depends on it may be written next. A given value takes precedence;
 * otherwise the file keeps its value, and a new value is generated only once.
 *
 * @param {string} file readable by its owner and group only
 * @param {{ given: string | undefined, generate: () => string }} options an empty `given` counts as none
 * @returns {'created' | 'replaced' | 'kept'}
 */
export function keepSecret(file, { given, generate }) {
  const kept = read(file);
  if (kept !== undefined && (!given || given === kept)) return 'kept';
  writeWhole(file, `${given || generate()}\n`, { mode: 0o440, durable: true });
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
 * Writes a file that only its owner can read, and that survives a power failure.
 * @param {string} file
 * @param {string} text
 */
export function writeSecret(file, text) {
  writeWhole(file, `${text}\n`, { mode: 0o600, durable: true });
}
