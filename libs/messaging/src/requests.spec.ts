import { afterEach, expect, it, jest } from '@jest/globals';
import kafkajs from 'kafkajs';
import { Invalid } from '#contracts';
import { createLog, type Log } from '#observability';
import { SecretBox } from '#secrets';
import { LogRecord } from './log-record.js';
import { LATE_MS } from './messages.js';
import type { OutgoingRecord, SendOptions } from './publisher.js';
import { Requests } from './requests.js';
import type { TransportOptions } from './transport.js';
import { errorFromWire, HEADER } from './wire.js';

afterEach(() => void jest.useRealTimers());

const recordWith = (headers: Record<string, string>): LogRecord =>
  new LogRecord('requests', 0, { key: null, value: Buffer.from('{}'), timestamp: '0', offset: '0', attributes: 0, headers }, 0);

const sendingWith = (send: (records: OutgoingRecord[], options: SendOptions) => Promise<void>) =>
  ({ log: createLog('test', 'silent'), box: new SecretBox([]), publisher: { send } }) as unknown as TransportOptions;

it.each([
  ['is sent again', 2, 3],
  ['is given up after three failures', 5, 3],
])('does not handle a request twice when Kafka does not accept the reply, which %s', async (_, failures, sends) => {
  let [handled, sent] = [0, 0];
  const options = sendingWith(async () => {
    if (++sent <= failures) throw new Error('refused');
  });
  const requests = new Requests(new Map([['a.b', async () => ++handled]]), options);
  const headers = { [HEADER.message]: 'a.b', [HEADER.replyTo]: 'replies', [HEADER.correlationId]: 'c' };
  await requests.handle(recordWith(headers));
  expect({ handled, sent }).toEqual({ handled: 1, sent: sends });
});

it.each([
  ['is handled before its deadline', -1000, 1, [undefined]],
  ['is refused shortly after it, because its caller may wait for a late reply', 1000, 0, ['unavailable']],
  ['gets no reply when no caller can wait any more', LATE_MS + 1000, 0, []],
])('a request %s', async (_, lateMs, times, replies) => {
  let handled = 0;
  const sent: OutgoingRecord[] = [];
  const options = sendingWith(async (records) => void sent.push(...records));
  const requests = new Requests(new Map([['a.b', async () => ++handled]]), options);
  const deadline = String(Date.now() - lateMs);
  const headers = { [HEADER.message]: 'a.b', [HEADER.replyTo]: 'replies', [HEADER.correlationId]: 'c', [HEADER.deadline]: deadline };
  await requests.handle(recordWith(headers));
  const codes = sent.map(({ headers: { error } = {} }) => (error === undefined ? undefined : errorFromWire(error).code));
  expect({ handled, codes }).toEqual({ handled: times, codes: replies });
  expect(sent.every(({ topic, key }) => topic === 'replies' && key === 'c')).toBe(true);
});

it('warns of requests that expired while it read requests, but not of those from before', async () => {
  const levels: string[] = [];
  const log = { debug: () => levels.push('debug'), warn: () => levels.push('warn') } as unknown as Log;
  const requests = new Requests(new Map([['a.b', async () => 1]]), { ...sendingWith(async () => {}), log });
  const headers = { [HEADER.message]: 'a.b', [HEADER.replyTo]: 'replies', [HEADER.correlationId]: 'c' };
  const expired = { ...headers, [HEADER.deadline]: String(Date.now() - 1) };
  jest.useFakeTimers({ now: Date.now() });
  for (let n = 0; n < 2; n++) await requests.handle(recordWith(expired));
  expect(levels).toEqual(['debug', 'debug']);
  const later = { ...headers, [HEADER.deadline]: String(Date.now() + 1) };
  jest.advanceTimersByTime(10);
  await requests.handle(recordWith(later));
  expect(levels).toEqual(['debug', 'debug', 'warn']);
});

it('says that the service is unavailable for a message of another version, so that its caller repeats the request', async () => {
  const sent: OutgoingRecord[] = [];
  const options = sendingWith(async (records) => void sent.push(...records));
  const headers = { [HEADER.message]: 'a.later', [HEADER.replyTo]: 'replies', [HEADER.correlationId]: 'c' };
  await new Requests(new Map(), options).handle(recordWith(headers));
  expect(sent.map(({ headers: { error } = {} }) => errorFromWire(error!).code)).toEqual(['unavailable']);
});

it.each([
  ['a broker that does not respond', new kafkajs.KafkaJSRequestTimeoutError('Request timed out', {} as never), 'unavailable'],
  [
    'a record that Kafka refuses',
    new kafkajs.KafkaJSProtocolError({ message: 'too large', type: 'MESSAGE_TOO_LARGE' } as never),
    'internal',
  ],
  ['a bug', new TypeError('x is not a function'), 'internal'],
])('replies to a request that fails because of %s', async (_, error, code) => {
  const sent: OutgoingRecord[] = [];
  const options = { ...sendingWith(async (records) => void sent.push(...records)), isTransient: () => false };
  const headers = { [HEADER.message]: 'a.b', [HEADER.replyTo]: 'replies', [HEADER.correlationId]: 'c' };
  await new Requests(new Map([['a.b', () => Promise.reject(error)]]), options).handle(recordWith(headers));
  expect(sent.map(({ headers: { error } = {} }) => errorFromWire(error!).code)).toEqual([code]);
});

it('lets a reply wait for those to other requests in progress, but not the last one', async () => {
  const sent: (boolean | undefined)[] = [];
  const options = sendingWith(async (_, { mayWait }) => void sent.push(mayWait));
  const slow = Promise.withResolvers<void>();
  const requests = new Requests(
    new Map([
      ['a.slow', () => slow.promise],
      ['a.fast', async () => {}],
      ['a.wrong', () => Promise.reject(new Invalid('no'))],
    ]),
    options,
  );
  const handle = (name: string) => {
    const headers = { [HEADER.message]: name, [HEADER.replyTo]: 'replies', [HEADER.correlationId]: 'c' };
    return requests.handle(recordWith(headers));
  };
  const first = handle('a.slow');
  await handle('a.fast');
  await handle('a.wrong');
  slow.resolve();
  await first;
  expect(sent).toEqual([true, true, false]);
});
