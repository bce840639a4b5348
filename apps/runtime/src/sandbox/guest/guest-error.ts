import { inspect } from 'node:util';
import type { GuestError } from '../wire/messages.js';
import { withAuthorLines } from './author-lines.js';

const limits = { name: 100, code: 100, message: 4000, stack: 8000, frames: 20 };

/** Describes any thrown value as text. Its getters run here, so nothing about it is assumed. */
export function guestError(thrown: unknown): GuestError {
  try {
    if (thrown === null || typeof thrown !== 'object') return { name: 'Error', code: null, message: plain(thrown), stack: '' };
    const { name, message, code, cause, stack } = thrown as NodeJS.ErrnoException & { cause?: unknown };
    return {
      name: cut(typeof name === 'string' ? name : 'Error', limits.name),
      code: codeOf(code) ?? codeOf((cause as NodeJS.ErrnoException | undefined)?.code),
      message: cut(typeof message === 'string' ? message : plain(thrown), limits.message),
      stack: cut(usersLines(stack) + causeLine(cause), limits.stack),
    };
  } catch {
    return { name: 'Error', code: null, message: 'The component threw a value that cannot be printed', stack: '' };
  }
}

/** Removes the frames of the runner and of Node, so that only those of the author's code and of packages remain. */
function usersLines(stack: unknown): string {
  if (typeof stack !== 'string') return '';
  const lines = stack.split('\n').filter((line) => !/^\s+at .*(\/runner\/runner\.cjs|node:)/.test(line));
  return withAuthorLines(lines.slice(0, limits.frames).join('\n'));
}

/** The message `fetch failed` alone does not help; the reason is in the cause. */
function causeLine(cause: unknown): string {
  if (!(cause instanceof Error)) return '';
  return `\n  cause: ${cut(`${cause.name}: ${cause.message}`, 500)}`;
}

function codeOf(code: unknown): string | null {
  return typeof code === 'string' || typeof code === 'number' ? cut(String(code), limits.code) : null;
}

function plain(value: unknown): string {
  return cut(typeof value === 'string' ? value : inspect(value, { depth: 2, maxStringLength: limits.message }), limits.message);
}

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
