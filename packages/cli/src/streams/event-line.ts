import type { EventSummary } from '@sluice/client';
import { cell, type Format, itemText, printable, styled } from '../session/output.js';

/**
 * One event as printable text; as YAML, a document, because others may follow. As a table: the time, its stream unless it is the default one, and the
 * event. Further lines, of a stack, are indented, so that they cannot look like another event.
 */
export function eventText(summary: EventSummary, format: Format, stream: NodeJS.WriteStream = process.stdout): string {
  if (format === 'yaml') return printable(`---\n${itemText(summary, format)}`);
  if (format !== 'table') return printable(itemText(summary, format));
  const { id, indexed_at_ms, event, metadata } = summary;
  const at = styled('dim', `${new Date(indexed_at_ms).toISOString()}  ${id}`, stream);
  const name = metadata.name === '' ? '' : `${styled(metadata.name === '$errors' ? 'red' : 'cyan', metadata.name, stream)}  `;
  const text = metadata.name === '$errors' ? errorText(event) : metadata.name === '$logs' ? logText(event) : cell(JSON.stringify(event));
  return `${at}  ${name}${printable(text).replaceAll('\n', '\n  ')}\n`;
}

/** An event of `$errors`: the stack of the error, or its message. */
export function errorText(event: unknown): string {
  const { error } = (event ?? {}) as { error?: { stack?: unknown; message?: unknown; code?: unknown } };
  if (typeof error?.stack === 'string' && error.stack !== '') return error.stack;
  return cell(error ? [error.code, error.message].filter(Boolean).join(': ') : event);
}

/** An event of `$logs`: what `console` was given. */
export function logText(event: unknown): string {
  const { level, message, msg, args } = (event ?? {}) as { level?: unknown; message?: unknown; msg?: unknown; args?: unknown };
  const text = message ?? msg ?? args;
  if (text === undefined) return cell(event);
  return `${typeof level === 'string' ? `${level} ` : ''}${cell(text)}`;
}

/** A stack without the address that the runtime gives to a component: `component.js:6:21`. */
export const shortStack = (text: string): string => text.replace(/component:\/\/\/\w+\//g, '');
