import { afterEach, expect, it } from '@jest/globals';
import { commandMessages } from './command-messages.js';

const before = { ...process.env };
afterEach(() => void (process.env = { ...before }));

it('needs the settings of Kafka only when it connects', async () => {
  process.env.KAFKA_SECURITY_PROTOCOL = 'ssl';
  process.env.KAFKA_SSL_CA_LOCATION = '/nowhere.pem';
  const { messages, whileConnected } = commandMessages('gateway');
  expect(() => messages.request({} as never, {}, { account: null, key: '' })).toThrow('not connected');
  await expect(whileConnected(async () => {})).rejects.toThrow('KAFKA_SSL_CA_LOCATION');
});
