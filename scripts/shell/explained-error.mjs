/**
 * A problem that one sentence explains and the reader can fix: printed without a stack.
 * Any other error is a bug and keeps its stack.
 */
export class ExplainedError extends Error {
  /** @override */
  name = 'ExplainedError';

  /** @param {string} sentence */
  constructor(sentence) {
    super(sentence);
    // Others (jest) print the stack of the errors they catch.
    this.stack = sentence;
  }
}

/** Errors of the file system, such as a full disk: not bugs. The message names the path. */
const FROM_THE_DISK = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES']);

/**
 * The text to print for an error: with its stack only if it is a bug.
 * @param {unknown} error
 * @returns {string}
 */
export function explain(error) {
  if (error instanceof Error && FROM_THE_DISK.has(/** @type {NodeJS.ErrnoException} */ (error).code ?? '')) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
