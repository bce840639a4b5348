import { describe, expect, it } from '@jest/globals';
import { loadAll } from 'js-yaml';
import type { EventSummary } from '@sluice/client';
import { eventText } from './event-line.js';

const CSI = '\u009b2J';
const summary = (name: string, event: EventSummary['event']): EventSummary => ({
  id: '5-1',
  indexed_at_ms: 0,
  event,
  metadata: { emitter_id: 'dc_1', emit_id: 'e', name },
});

describe('an event whose sender has put control characters into it', () => {
  it.each<[string, string, EventSummary['event'], string]>([
    [
      'the stack of an error',
      '$errors',
      { error: { stack: `Error: \u001b]0;x\u0007\n    at ${CSI}` } },
      'Error: \\u001b]0;x\\u0007\n      at \\u009b2J',
    ],
    ['the message of an error', '$errors', { error: { code: `a${CSI}`, message: 'm' } }, 'a·2J: m'],
    ['a log line', '$logs', { level: `info${CSI}`, message: `m${CSI}` }, 'info\\u009b2J m·2J'],
    ['the name of a stream', `n${CSI}`, 1, 'n\\u009b2J  1'],
    ['a value', '', { a: CSI }, '{"a":"·2J"}'],
    ['a value in another direction', '', { a: 'x\u202ey\u2066' }, '{"a":"x·y·"}'],
    ['a stack in another direction', '$errors', { error: { stack: 'x\u202ey\u2028' } }, 'x\\u202ey\\u2028'],
    ['a stack that looks like an event', '$errors', { error: { stack: 'x\n1970-01-01T00:00:00.000Z  5-2' } }, 'x\n  1970-'],
  ])('shows them as text in %s', (_, name, event, shown) => {
    const text = eventText(summary(name, event), 'table');
    expect(text).toContain(shown);
    expect(text).not.toMatch(/[^\P{Cc}\n]/u);
  });

  it.each(['json', 'ndjson'] as const)('is the same value in %s', (format) => {
    const text = eventText(summary('', CSI), format);
    expect(text).not.toMatch(/[^\P{Cc}\n]/u);
    expect((JSON.parse(text) as EventSummary).event).toBe(CSI);
  });
});

it('a following event is a YAML document, which others may follow', () => {
  const text = eventText(summary('', { a: CSI }), 'yaml') + eventText(summary('', 2), 'yaml');
  expect(text).not.toMatch(/[^\P{Cc}\n]/u);
  expect(loadAll(text)).toEqual([summary('', { a: CSI }), summary('', 2)]);
});
