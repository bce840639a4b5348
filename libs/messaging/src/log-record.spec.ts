import { expect, it } from '@jest/globals';
import type { KafkaMessage } from 'kafkajs';
import { LogRecord } from './log-record.js';

const record = (headers: object) =>
  new LogRecord('t', 0, { offset: '1', timestamp: '2', key: null, value: null, headers } as unknown as KafkaMessage, 2);

it.each([
  ['text', 'a', 'a'],
  ['bytes', Buffer.from('a'), 'a'],
  ['two values', [Buffer.from('a'), Buffer.from('b')], 'a'],
  ['no value', null, undefined],
  ['no value and a value', [null, Buffer.from('b')], undefined],
])('a header with %s is read', (_, value, expected) => {
  expect(record({ x: value }).header('x')).toBe(expected);
  expect(record({ x: value }).headerEntries()).toEqual({ x: expected ?? '' });
});

it('counts the bytes of its key, its value and its headers, and what the headers take in addition', () => {
  const headers = { é: Buffer.from('中'), none: undefined };
  const message = { offset: '1', timestamp: '2', key: Buffer.from('k'), value: Buffer.from('ab'), headers } as unknown as KafkaMessage;
  expect(new LogRecord('t', 0, message, 2).bytes).toBe(1 + 2 + (2 + 3 + 100) + (4 + 100));
});
