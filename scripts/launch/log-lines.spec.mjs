import { describe, expect, test } from '@jest/globals';
import { formatLogLine } from './log-lines.mjs';

const time = new Date(2026, 0, 2, 3, 4, 5, 6).getTime();
/** @param {object} entry */
const format = (entry) => formatLogLine('routing', JSON.stringify({ time, level: 'info', service: 'routing', ...entry }));

describe('an app’s line', () => {
  test('shows the date, the time, the app, the message and its fields', () => {
    const line = format({ msg: 'delivery.attempted', status: 200, url: 'http://a/?b=c', ids: ['x'] });
    expect(line).toBe('2026-01-02 03:04:05.006 routing      delivery.attempted status=200 url="http://a/?b=c" ids=["x"]');
  });

  test('marks a warning or an error, and shows the stack of the error', () => {
    expect(format({ level: 'warn', msg: 'slow' })).toContain('routing      WARN slow');
    expect(format({ level: 50, msg: 'bad', err: { message: 'm', stack: 'Error: m\n  at f' } })).toContain(
      'ERROR bad\n  Error: m\n    at f',
    );
  });

  test('shows what a component logs with the name of its source, and cannot be used to control the terminal', () => {
    const line = format({ msg: 'component.logged', source: 'orders', source_id: 'dc_1', console: 'log', message: 'a\u001b[2Jb\nc' });
    expect(line).toBe('2026-01-02 03:04:05.006 orders       a\\u001b[2Jb\n  c');
    expect(format({ msg: 'component.logged', source: 'orders', console: 'warn', message: 'low' })).toContain('orders       WARN low');
  });

  test('shows the error of a component with the lines of its author', () => {
    const stack = 'TypeError: no price\n    at Object.run (component:///0a1b2c/component.js:9:26)';
    expect(format({ msg: 'component.threw', source: 'orders', run_id: 'r', stack })).toBe(
      '2026-01-02 03:04:05.006 orders       ERROR TypeError: no price\n      at Object.run (component.js:9:26)',
    );
  });

  test('shows control characters of other texts as text, wherever they are', () => {
    const csi = '\u009b2J';
    const entry = {
      msg: `m${csi}`,
      at: `x\u001b[2J`,
      url: `a ${csi}`,
      [`n${csi}`]: [csi],
      err: { stack: `Error: e${csi}\n    at \u0007` },
    };
    expect(format(entry)).toBe(
      '2026-01-02 03:04:05.006 routing      m\\u009b2J at=x\\u001b[2J url="a \\u009b2J" n\\u009b2J=["\\u009b2J"]\n  Error: e\\u009b2J\n      at \\u0007',
    );
    expect(formatLogLine('kafka', `WARN ${csi}\tx`)).toMatch(/ kafka {8}WARN \\u009b2J\tx$/);
  });

  test.each([
    ['the error of a component', { msg: 'component.threw', source: 'orders', stack: 'Error: x\n21:55:00.001 gateway      FATAL y' }],
    ['a line of a component', { msg: 'component.logged', source: 'orders', message: 'x\n21:55:00.001 gateway      FATAL y' }],
    ['the name of a source', { msg: 'component.logged', source: 'a\n21:55:00.001 gateway      FATAL y', message: 'x' }],
    ['a message', { msg: 'x\n21:55:00.001 gateway      FATAL y' }],
    ['an error', { msg: 'x', err: { message: 'y\n21:55:00.001 gateway      FATAL z' } }],
  ])('has no second line that looks like one of another app: %s', (_, entry) => {
    expect(format(entry)).toMatch(/\n {2}21:55/);
  });

  test('shows other line breaks and changes of the direction of text as text', () => {
    expect(format({ msg: 'component.logged', source: 'orders', message: 'a\u2028b\u2029c\u202ed\u2066' })).toBe(
      '2026-01-02 03:04:05.006 orders       a\\u2028b\\u2029c\\u202ed\\u2066',
    );
  });

  test('is unchanged if it is not JSON', () => {
    expect(formatLogLine('routing', '{ not json')).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} routing {6}\{ not json$/);
  });

  test('has colours and no date in a terminal', () => {
    const line = JSON.stringify({ time, level: 'error', msg: 'bad' });
    const dim = '\u001b[2m03:04:05.006\u001b[0m';
    expect(formatLogLine('routing', line, { isTerminal: true })).toBe(
      `${dim} \u001b[36mrouting     \u001b[0m \u001b[31mERROR bad\u001b[0m`,
    );
    expect(formatLogLine('routing', line)).toBe('2026-01-02 03:04:05.006 routing      ERROR bad');
  });
});
