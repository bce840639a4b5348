import { expect, it } from '@jest/globals';
import { explainDatabaseError, isTransient, outageOf } from './database-errors.js';

const withCode = (code: string) => Object.assign(new Error('failed'), { code });

it.each([
  ...[
    '08000',
    '08003',
    '08006',
    '40001',
    '40P01',
    '53000',
    '53100',
    '53200',
    '53300',
    '55P03',
    '57P01',
    '57P02',
    '57P03',
    '57P05',
    '58030',
  ],
  // the time limits of transactions and statements
  ...['25P03', '25P04', '57014'],
  // read-only
  '25006',
  // a login, a permission, a name or a certificate that is refused until the operator changes it
  ...['28000', '28P01', '3D000', '42501', 'CERT_HAS_EXPIRED', 'ERR_TLS_CERT_ALTNAME_INVALID', 'SELF_SIGNED_CERT_IN_CHAIN'],
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EPROTO', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENETDOWN', 'ENOBUFS'],
])('a failure with the code %s is transient', (code) => {
  expect(isTransient(withCode(code))).toBe(true);
});

it.each(['22P02', '23505', '25P01', '25P02', '42P01', '54000', 'ENOENT'])('a failure with the code %s is not transient', (code) => {
  expect(isTransient(withCode(code))).toBe(false);
});

it.each([
  ...['ENOTFOUND', 'EAI_AGAIN', 'EMFILE'].map((code) => ['getaddrinfo', code]),
  ...['EMFILE', 'ENFILE', 'EPERM', 'EADDRNOTAVAIL', 'ENOMEM', 'ENOENT'].map((code) => ['connect', code]),
])('a failure to connect is transient: %s %s', (syscall, code) => {
  expect(isTransient(Object.assign(withCode(code), { syscall }))).toBe(true);
});

it.each([
  // of the first address; those of connections to several addresses have no system call together
  ['EMFILE', 'connect', true],
  ['EISDIR', 'read', false],
])('a failure with several causes is transient if one of them is: %s %s', (code, syscall, isIt) => {
  const causes = [withCode('42P01'), Object.assign(withCode(code), { syscall })];
  expect(isTransient(Object.assign(new AggregateError(causes), { code }))).toBe(isIt);
});

it.each([
  ['open', 'EMFILE'],
  ['read', 'EISDIR'],
  ['listen', 'EADDRNOTAVAIL'],
])('a failure that is not of a connection is not transient: %s %s', (syscall, code) => {
  expect(isTransient(Object.assign(withCode(code), { syscall }))).toBe(false);
});

it.each([
  ['open', 'A file named in DATABASE_URL cannot be read: failed.'],
  // a socket file, while the server restarts
  ['connect', undefined],
])('a missing file is explained if the system call is %s', (syscall, explanation) => {
  expect(explainDatabaseError(Object.assign(withCode('ENOENT'), { syscall }))).toBe(explanation);
});

it.each([
  ['53100', 'the disk of the database is full'],
  ['28P01', 'the database refuses access'],
  ['57P03', 'the database does not respond'],
])('a user learns what is wrong if the code is %s', (code, message) => {
  expect(outageOf(withCode(code))).toBe(message);
});
