import { expect, it } from '@jest/globals';
import { emitterChanged } from '#contracts';
import { Consumers } from '#messaging';
import { createLog } from '#observability';
import type { EmitterDirectory } from './directory.js';
import { LostFacts } from './lost-facts.js';

it('all states are learnt once when partitions of the facts are replaced, and again after a failure', async () => {
  const consumers = new Consumers();
  const { promise: learnt, resolve } = Promise.withResolvers<void>();
  let attempts = 0;
  const learnAll = async () => {
    attempts += 1;
    if (attempts === 1) throw new Error('the catalog is down');
    resolve();
    return 2;
  };
  const lost = new LostFacts(consumers, { learnAll } as EmitterDirectory, createLog('test', 'silent'));
  lost.onModuleInit();
  consumers.replaced('events');
  expect(attempts).toBe(0);
  consumers.replaced(emitterChanged.topic);
  consumers.replaced(emitterChanged.topic);
  await learnt;
  expect(attempts).toBe(2);
  lost.onApplicationShutdown();
});
