import { expect, it } from '@jest/globals';
import { executeRun, topicSpecs } from '#contracts';
import { recordOf } from '#messaging';
import { httpRun } from './endpoints/http-event.js';
import { RuntimeConfig } from './runtime.config.js';

const NAME = 'SLUICE_MAX_ENDPOINT_BODY_BYTES';

it('allows no body of an endpoint that does not fit into the record of its run', () => {
  const { maxEndpointBodyBytes: most } = RuntimeConfig.read({ [NAME]: String(2 * 1024 * 1024) });
  expect(() => RuntimeConfig.read({ [NAME]: String(most + 1) })).toThrow(`${NAME} must be a whole number from 1024 to ${most}`);
  // Node limits all headers together
  const head = { method: 'POST', path: '/', search: '', headers: { 'x-large': '"'.repeat(16 * 1024) } };
  const run = httpRun({ ...head, body: Buffer.alloc(most, 0xff) });
  const { value } = recordOf(executeRun, run as never, 'u_1');
  const { config } = topicSpecs().find(({ topic }) => topic === executeRun.topic)!;
  expect(Buffer.byteLength(value)).toBeLessThan(Number(config!['max.message.bytes']));
});
