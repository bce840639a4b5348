import { expect, it } from '@jest/globals';
import type { Log } from '#observability';
import { KafkaConfig } from './kafka.config.js';
import { KafkaClient } from './kafka.js';

it.each([
  ['Connection error: connect ECONNREFUSED', 'warn'],
  ['Limiting retries for the idempotent producer may invalidate EoS guarantees', 'debug'],
  // the response to a fetch that a stop did not wait for
  ['Response without match', 'debug'],
])('logs the warning of kafkajs "%s" at the level %s', (message, expected) => {
  const levels: string[] = [];
  const log = { warn: () => levels.push('warn'), debug: () => levels.push('debug') } as unknown as Log;
  new KafkaClient(KafkaConfig.read({}), 'test', log).logger().warn(message);
  expect(levels).toEqual([expected]);
});

it('logs a warning that all consumers of the process have only once', () => {
  const warnings: string[] = [];
  const log = { warn: (_: object, message: string) => warnings.push(message), debug: () => {} } as unknown as Log;
  const client = new KafkaClient(KafkaConfig.read({}), 'test', log);
  for (const groupId of ['a', 'b']) client.consumer({ groupId }).logger().warn('Connection error: connect ECONNREFUSED');
  expect(warnings).toEqual(['kafka: Connection error: connect ECONNREFUSED']);
});
