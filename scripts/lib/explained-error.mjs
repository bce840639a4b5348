/**
 * A problem that one sentence explains and the reader can cure: printed without a stack.
 * Any other error is a bug of ours and keeps its stack.
 */
export class ExplainedError extends Error {
  /** @override */
  name = 'ExplainedError';
}

/**
 * What to print for an error.
 * @param {unknown} error
 * @returns {string}
 */
export function explain(error) {
  if (error instanceof ExplainedError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
