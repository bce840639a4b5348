import { format, inspect } from 'node:util';
import { depthOf } from '../wire/json-text.js';
import { currentRun } from './run-state.js';

// taken before any component could replace it
const { now } = Date;

const levels = ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir'] as const;
const deepestArgs = 20;

/**
 * The `console` of components: a call adds a log line to the current run. It replaces Node's console, whose output would be lost.
 */
export function installConsole(): void {
  const guestConsole: Record<string, unknown> = { ...console };
  for (const level of levels) guestConsole[level] = (...args: unknown[]) => log(level === 'dir' ? 'log' : level, args);
  guestConsole.assert = (condition: unknown, ...args: unknown[]) => {
    if (!condition) log('error', ['Assertion failed:', ...args]);
  };
  guestConsole.table = (data: unknown) => log('log', [data]);
  Object.defineProperty(globalThis, 'console', { value: guestConsole, writable: true, configurable: true });
}

function log(level: string, args: unknown[]): void {
  const run = currentRun.getStore();
  if (!run || run.done) return;
  if (run.logs >= run.limits.logs) {
    run.logsLeftOut++;
    return;
  }
  run.logs++;
  const message = cut(messageOf(args, run.limits.logBytes), run.limits.logBytes);
  run.put(['log', level, now(), message, argsOf(args, run.limits.logBytes)], message.length);
}

function messageOf(args: unknown[], most: number): string {
  try {
    if (typeof args[0] === 'string' && args[0].includes('%')) return format(...args);
    return args
      .map((arg) =>
        typeof arg === 'string' ? arg : inspect(arg, { depth: 4, maxArrayLength: 100, maxStringLength: most, breakLength: 120 }),
      )
      .join(' ');
  } catch {
    return '[not printable]';
  }
}

/** The arguments as data, if they are more than text, plain and small. */
function argsOf(args: unknown[], most: number): string | null {
  if (!args.some((arg) => typeof arg === 'object' && arg !== null && !(arg instanceof Error))) return null;
  try {
    const text = JSON.stringify(args);
    return text.length <= most && depthOf(text) <= deepestArgs ? text : null;
  } catch {
    return null;
  }
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
