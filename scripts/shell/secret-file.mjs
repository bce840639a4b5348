import { chmodSync, readFileSync } from 'node:fs';
import { writeWhole } from './whole-file.mjs';

/**
 * Makes sure that a file contains a secret, also after a power failure: data that depends on it may be written next. A given value takes precedence;
 * otherwise the file keeps its value, and a new value is generated only once.
 *
 * @param {string} file
 * @param {{ given: string | undefined, generate: () => string, mode: number }} options an empty `given` counts as none; an existing file gets the mode, too
 * @returns {'created' | 'replaced' | 'kept'}
 */
export function keepSecret(file, { given, generate, mode }) {
  const kept = readSecret(file);
  if (kept !== undefined && (!given || given === kept)) {
    chmodSync(file, mode);
    return 'kept';
  }
  writeWhole(file, `${given || generate()}\n`, { mode, durable: true });
  return kept === undefined ? 'created' : 'replaced';
}

/**
 * @param {string} file
 * @returns {string | undefined} undefined if the file contains no secret
 */
export function readSecret(file) {
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
