import { expect, it } from '@jest/globals';
import { errorEventJson, originalEvent } from './error-event.js';
import { maxEventBytes } from './event-limits.js';

it('refuses a limit with which an error could be too large for $errors', () => {
  const { length } = errorEventJson({
    ...{ code: 'c', message: 'm'.repeat(16_384), stack: 's'.repeat(32_768), ts: 't', context: {} },
    originalEvent: originalEvent(JSON.stringify('x'.repeat(512 * 1024 - 2))),
  });
  expect(() => maxEventBytes.parse(String(length - 1))).toThrow('must be a whole number from 655360 to 1048576');
});
