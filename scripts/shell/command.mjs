import { parseArgs } from 'node:util';
import { explain, ExplainedError } from './explained-error.mjs';

/**
 * Runs an npm script: parses its arguments, prints its usage for `--help`, and prints the error if it fails.
 *
 * @template {NonNullable<import('node:util').ParseArgsConfig['options']>} Options
 * @param {{ usage: string, options: Options }} description as of node:util's parseArgs; `--help` is added
 * @param {(
 *   options: ReturnType<typeof parseArgs<{ options: Options, allowPositionals: true }>>['values'],
 *   positionals: string[],
 * ) => Promise<number>} action returns the exit code
 */
export async function runScript({ usage, options }, action) {
  try {
    const { values, positionals } = parse(usage, options);
    if (/** @type {{ help?: boolean }} */ (values).help) console.log(usage);
    else process.exitCode = await action(values, positionals);
  } catch (error) {
    console.error(explain(error));
    process.exitCode = 1;
  }
}

/**
 * @template {NonNullable<import('node:util').ParseArgsConfig['options']>} Options
 * @param {string} usage
 * @param {Options} options
 */
function parse(usage, options) {
  try {
    return parseArgs({ allowPositionals: true, options: { ...options, help: { type: 'boolean', short: 'h', default: false } } });
  } catch (error) {
    throw new ExplainedError(`${/** @type {Error} */ (error).message}\n\n${usage}`);
  }
}
