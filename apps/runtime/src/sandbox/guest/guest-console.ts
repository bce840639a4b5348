import { syncBuiltinESMExports } from 'node:module';
import { formatWithOptions, inspect } from 'node:util';
import { depthOf } from '../wire/json-text.js';
import { forAuthor } from './author-lines.js';
import { withoutCredentials } from './printed-request.js';
import { printingRun, type RunState } from './run-state.js';

// taken before any component could replace them
const { now } = Date;
const { stringify } = JSON;
const clock = performance.now.bind(performance);

const levels = ['log', 'info', 'warn', 'error', 'debug', 'trace'] as const;
const deepestInspected = 4;
/** Node's default */
const deepestFormatted = 2;
const deepestArgs = 20;
/** The JSON of a log event without its message and arguments: the level, the time and the names. */
const envelopeBytes = 100;

/** The state of `count` and `time` in one run, by label. */
interface Labels {
  counts: Map<string, number>;
  starts: Map<string, number>;
}

const labelsOfRuns = new WeakMap<RunState, Labels>();

/**
 * The `console` of components: a call that prints adds a log line to the current run. The methods of Node's own object are replaced, because
 * `require('console')` returns it, too; its output would be lost.
 */
export function installConsole(): void {
  for (const level of levels) console[level] = (...args: unknown[]) => log(level, args);
  const print = (...args: unknown[]): void => log('log', args);
  const printTime = (label: unknown, args: unknown[]): void => {
    const start = labels().starts.get(String(label));
    if (start === undefined) log('warn', [`No time was started with the label ${String(label)}`]);
    else print('%s: %s', String(label), `${(clock() - start).toFixed(3)}ms`, ...args);
  };
  Object.assign(console, {
    assert(condition: unknown, ...args: unknown[]): void {
      if (!condition) log('error', ['Assertion failed:', ...args]);
    },
    dir: (value: unknown) => print(value),
    dirxml: print,
    table: (data: unknown) => print(data),
    // An event has no indentation, so only the label of a group is visible
    group: (...args: unknown[]) => args.length > 0 && print(...args),
    groupCollapsed: (...args: unknown[]) => args.length > 0 && print(...args),
    groupEnd(): void {},
    count(label: unknown = 'default'): void {
      const { counts } = labels();
      const count = (counts.get(String(label)) ?? 0) + 1;
      counts.set(String(label), count);
      print('%s: %d', String(label), count);
    },
    countReset: (label: unknown = 'default') => void labels().counts.delete(String(label)),
    time: (label: unknown = 'default') => void labels().starts.set(String(label), clock()),
    timeLog: (label: unknown = 'default', ...args: unknown[]) => printTime(label, args),
    timeEnd(label: unknown = 'default'): void {
      printTime(label, []);
      labels().starts.delete(String(label));
    },
  });
  // for `import { log } from 'console'`
  syncBuiltinESMExports();
}

function labels(): Labels {
  const run = printingRun();
  const known = run && labelsOfRuns.get(run);
  if (known) return known;
  const labels: Labels = { counts: new Map(), starts: new Map() };
  if (run) labelsOfRuns.set(run, labels);
  return labels;
}

function log(level: string, args: unknown[]): void {
  const run = printingRun();
  if (!run) return;
  if (run.logs >= run.limits.logs) {
    run.logsLeftOut++;
    return;
  }
  run.logs++;
  const most = run.limits.logBytes - envelopeBytes;
  const message = cut(forAuthor(withoutCredentials(messageOf(args, most))), most);
  const data = argsOf(args, most - jsonBytes(message));
  run.put(['log', level, now(), message, data], message.length + (data?.length ?? 0));
}

function messageOf(args: unknown[], most: number): string {
  try {
    if (typeof args[0] === 'string' && args[0].includes('%'))
      return printed((depth) => formatWithOptions({ depth }, ...args), deepestFormatted, most);
    return args.map((arg) => (typeof arg === 'string' ? arg : inspected(arg, most))).join(' ');
  } catch {
    return '[not printable]';
  }
}

function inspected(value: unknown, most: number): string {
  const options = { maxArrayLength: 100, maxStringLength: most, breakLength: 120 };
  return printed((depth) => inspect(value, { ...options, depth }), deepestInspected, most);
}

/** No deeper than is kept: all levels of a large value can take a second to print. */
function printed(print: (depth: number) => string, deepest: number, most: number): string {
  for (let depth = 0, before = ''; ; depth++) {
    const text = print(depth);
    // `[ 1 ]` is shorter than `[Array]`: a text that is a little too long may fit with another level
    if (depth === deepest || text === before || text.length > 2 * most) return text;
    before = text;
  }
}

const leftOut = new Set(['undefined', 'function', 'symbol']);

/** The arguments as data, if they are more than text, plain and small. */
function argsOf(args: unknown[], most: number): string | null {
  try {
    // A proxy may throw at anything
    if (!args.some((arg) => typeof arg === 'object' && arg !== null && !(arg instanceof Error))) return null;
    const text = JSON.stringify(args, limitedTo(most));
    return Buffer.byteLength(text) <= most && depthOf(text) <= deepestArgs ? text : null;
  } catch {
    return null;
  }
}

/** A replacer that changes nothing, and throws when the JSON will certainly have more bytes. What JSON leaves out counts nothing. */
function limitedTo(most: number): (key: string, value: unknown) => unknown {
  let left = most;
  return (_, value) => {
    left -= typeof value === 'string' ? value.length : leftOut.has(typeof value) ? 0 : 1;
    if (left < 0) throw new RangeError();
    return value;
  };
}

/** The longest beginning whose JSON has at most this many bytes. */
function cut(text: string, most: number): string {
  // a unit of UTF-16 needs at most six bytes
  if (text.length * 6 + 2 <= most || jsonBytes(text) <= most) return text;
  const shortened = (length: number) => `${text.slice(0, length).toWellFormed()}…`;
  let [fits, tooLong] = [0, Math.min(text.length, most)];
  while (tooLong - fits > 1) {
    const middle = (fits + tooLong) >> 1;
    if (jsonBytes(shortened(middle)) <= most) fits = middle;
    else tooLong = middle;
  }
  return shortened(fits);
}

const jsonBytes = (text: string): number => Buffer.byteLength(stringify(text));
