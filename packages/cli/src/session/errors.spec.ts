import { expect, it } from '@jest/globals';
import { SluiceError } from '@sluice/client';
import { explain } from './errors.js';

it.each([
  ['3600', 'too many; retry in 3600 s'],
  ['Wed, 21 Oct 2026 07:28:00 GMT', 'too many; retry after Wed, 21 Oct 2026 07:28:00 GMT'],
  [undefined, 'too many'],
])('shows when to retry a request that is not repeated, because the wait would be long: %s', (retryAfter, text) => {
  expect(explain(new SluiceError(429, { detail: 'too many' }, retryAfter))).toBe(text);
});
