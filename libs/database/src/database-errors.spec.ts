import { expect, it } from '@jest/globals';
import { isTransient } from './database-errors.js';

const withCode = (code: string) => Object.assign(new Error('failed'), { code });

it.each([
  ...['08000', '08003', '08006', '40001', '40P01', '53000', '53100', '53200', '53300', '55P03', '57P01', '57P02', '57P03', '57P05'],
  // the time limits of transactions
  ...['25P03', '25P04'],
  // read-only
  '25006',
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'],
])('a failure with the code %s is transient', (code) => {
  expect(isTransient(withCode(code))).toBe(true);
});

it.each(['22P02', '23505', '25P01', '25P02', '42P01', '42501', '54000', 'ENOENT'])(
  'a failure with the code %s is not transient',
  (code) => {
    expect(isTransient(withCode(code))).toBe(false);
  },
);
