import { inspect } from 'node:util';
import type { GuestError } from '../wire/messages.js';
import { forAuthor, withAuthorLines } from './author-lines.js';

const limits = { name: 100, code: 100, message: 4000, stack: 8000, frames: 20, reasons: 10 };

/** Describes any thrown value as text. Its getters run here, so nothing about it is assumed. */
export function guestError(thrown: unknown): GuestError {
  try {
    if (thrown === null || typeof thrown !== 'object') return { name: 'Error', code: null, message: plain(thrown), stack: '' };
    const { name, message, code, cause, stack } = thrown as NodeJS.ErrnoException & { cause?: unknown };
    return {
      name: cut(typeof name === 'string' ? name : 'Error', limits.name),
      code: codeOf(code) ?? codeOf((cause as NodeJS.ErrnoException | undefined)?.code),
      message: cut(typeof message === 'string' ? message : plain(thrown), limits.message),
      stack: cut(stackOf(stack, message) + reasonLines(thrown, cause), limits.stack),
    };
  } catch {
    return { name: 'Error', code: null, message: 'The component threw a value that cannot be printed', stack: '' };
  }
}

/** The message and the frames have separate limits: a long message must not hide the author's lines. */
function stackOf(stack: unknown, message: unknown): string {
  if (typeof stack !== 'string') return '';
  const start = startOfFrames(stack, message);
  const frames = forAuthor(stack.slice(start))
    .split('\n')
    .slice(0, 1 + limits.frames);
  return cut(withAuthorLines(stack.slice(0, start)), limits.message) + frames.join('\n');
}

/** Behind the message, because a message can contain the stack of another error. */
function startOfFrames(stack: string, message: unknown): number {
  const at = typeof message === 'string' ? stack.indexOf(message) : -1;
  const end = at < 0 ? 0 : at + (message as string).length;
  const frames = stack.slice(end).search(/\n[ \t]+at /);
  return frames < 0 ? stack.length : end + frames;
}

/** The message `fetch failed` alone does not help; the reason is in the cause. An AggregateError has several reasons, and often no message. */
function reasonLines(thrown: object, cause: unknown): string {
  const causes = cause === undefined || cause === null ? [] : [`\n  cause: ${reason(cause)}`];
  const aggregate = [thrown, cause].find((each) => each instanceof AggregateError);
  const reasons = (aggregate?.errors ?? []).slice(0, limits.reasons).map((each) => `\n  reason: ${reason(each)}`);
  return [...causes, ...reasons].join('');
}

const reason = (thrown: unknown): string => cut(thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : plain(thrown), 500);

function codeOf(code: unknown): string | null {
  return typeof code === 'string' || typeof code === 'number' ? cut(String(code), limits.code) : null;
}

function plain(value: unknown): string {
  return cut(typeof value === 'string' ? value : forAuthor(inspect(value, { depth: 2, maxStringLength: limits.message })), limits.message);
}

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
