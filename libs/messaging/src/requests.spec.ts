import { expect, it } from '@jest/globals';
import { createLog } from '#observability';
import { SecretBox } from '#secrets';
import { LogRecord } from './log-record.js';
import { Requests } from './requests.js';
import type { TransportOptions } from './transport.js';
import { HEADER } from './wire.js';

it.each([
  ['is sent again', 2, 3],
  ['is given up after three failures', 5, 3],
])('does not handle a request twice when Kafka does not accept the reply, which %s', async (_, failures, sends) => {
  let [handled, sent] = [0, 0];
  const options = {
    log: createLog('test', 'silent'),
    box: new SecretBox([]),
    publisher: {
      send: async () => {
        if (++sent <= failures) throw new Error('refused');
      },
    },
  } as unknown as TransportOptions;
  const requests = new Requests(new Map([['a.b', async () => ++handled]]), options);
  const headers = { [HEADER.message]: 'a.b', [HEADER.replyTo]: 'replies', [HEADER.correlationId]: 'c' };
  const message = { key: null, value: Buffer.from('{}'), timestamp: '0', offset: '0', attributes: 0, headers };
  await requests.handle(new LogRecord('requests', 0, message, 0));
  expect({ handled, sent }).toEqual({ handled: 1, sent: sends });
});
