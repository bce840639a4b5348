import { afterEach, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { explain } from './explain.js';

afterEach(() => void delete process.env['SLUICE_HTTP_HOST']);

it('names the variable with an address on which a service cannot listen because its name does not exist', async () => {
  const host = 'no-such-host.invalid';
  process.env['SLUICE_HTTP_HOST'] = host;
  const [error] = await once(createServer().listen(0, host), 'error').catch((thrown: unknown) => [thrown]);
  expect(explain(error)).toEqual([expect.stringMatching(/^SLUICE_HTTP_HOST: the name no-such-host\.invalid cannot be resolved \(E\w+\)$/)]);
  process.env['SLUICE_HTTP_HOST'] = '127.0.0.1';
  expect(explain(error)).toEqual([expect.stringMatching(/^PostgreSQL does not respond: /)]);
});
