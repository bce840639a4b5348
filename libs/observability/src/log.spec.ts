import { describe, expect, it } from '@jest/globals';
import { describeError } from './log.js';

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
