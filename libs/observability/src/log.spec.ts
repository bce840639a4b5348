import { describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { createLog, describeError } from './log.js';

describe('an error in the log', () => {
  it('has its stack and the texts, numbers and booleans that a library has added', () => {
    const error = Object.assign(new TypeError('too long'), { code: '22001', position: 7, retryable: false });
    expect(describeError(error)).toEqual({
      ...{ type: 'TypeError', message: 'too long', stack: error.stack },
      ...{ code: '22001', position: 7, retryable: false },
    });
  });

  it('has no connections, parameters, requests or values of rows', () => {
    const error = Object.assign(new Error('lost'), {
      client: { host: 'db', connectionParameters: { password: 'p' } },
      parameters: ['a secret'],
      driverError: new Error('lost'),
      detail: 'Key (email)=(someone@example.com) already exists.',
    });
    expect(describeError(error)).toEqual({ type: 'Error', message: 'lost', stack: error.stack });
  });

  it('has the stacks of its causes, and each of several errors', () => {
    const caused = describeError(new Error('not sent', { cause: new Error('refused') })) as { stack: string };
    expect(caused.stack).toContain('caused by: Error: refused');
    const first = Object.assign(new Error('first'), { client: {} });
    expect(describeError(new AggregateError([first], 'all failed'))).toMatchObject({
      message: 'all failed',
      aggregateErrors: [{ type: 'Error', message: 'first', stack: first.stack }],
    });
  });

  it('may be something else that was thrown', () => {
    expect(describeError('text')).toBe('text');
  });
});

describe('a line about an error', () => {
  const reasonOf = (error: unknown) => (error instanceof RangeError ? error.message : undefined);

  function logged(fields: object): Record<string, unknown> {
    const lines: string[] = [];
    const log = createLog('test', 'info', reasonOf);
    Reflect.set(log, pino.symbols.streamSym, { write: (line: string) => lines.push(line) });
    log.warn(fields, 'work.failed');
    return JSON.parse(lines.join()) as Record<string, unknown>;
  }

  it('has the reason instead of the stack if the error is not a bug', () => {
    const line = logged({ group: 'g', err: new RangeError('Kafka is down') });
    expect(line).toMatchObject({ group: 'g', reason: 'Kafka is down', msg: 'work.failed' });
    expect(line).not.toHaveProperty('err');
    expect(logged({ err: new RangeError('down'), reason: 'grant it' })).toMatchObject({ reason: 'grant it' });
  });

  it('shows the stack if the error is a bug', () => {
    expect(logged({ err: new TypeError('x is undefined') })).toMatchObject({ err: { stack: expect.stringContaining('log.spec.ts') } });
  });
});
