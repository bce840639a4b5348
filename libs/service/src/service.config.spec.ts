import { expect, it } from '@jest/globals';
import { ServiceConfig } from './service.config.js';

it('rejects a delay that leaves no time to stop', () => {
  const read = (delay: string) => ServiceConfig.read({ SLUICE_SHUTDOWN_TIMEOUT: '8s', SLUICE_SHUTDOWN_DELAY: delay });
  expect(read('7s').shutdownDelayMs).toBe(7000);
  for (const delay of ['8s', '20s'])
    expect(() => read(delay)).toThrow('SLUICE_SHUTDOWN_DELAY must be shorter than SLUICE_SHUTDOWN_TIMEOUT (8 s), which includes it');
});
