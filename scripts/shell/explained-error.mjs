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

/**
 * The text to print for an error.
 * @param {unknown} error
 * @returns {string}
 */
export function explain(error) {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
