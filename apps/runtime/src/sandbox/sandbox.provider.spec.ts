import { afterEach, expect, it } from '@jest/globals';
import { readSandboxConfig } from './sandbox.provider.js';

const LIMIT = 'SLUICE_MAX_EVENT_BYTES';
const before = process.env[LIMIT];
afterEach(() => {
  if (before === undefined) delete process.env[LIMIT];
  else process.env[LIMIT] = before;
});

it('lets components emit events up to the limit of the services that read them', () => {
  process.env[LIMIT] = String(700 * 1024);
  expect(readSandboxConfig().limits.eventBytes).toBe(700 * 1024);
});
