import { expect, it } from '@jest/globals';
import { Consumers } from '#messaging';
import { createLog } from '#observability';
import { afterLossOf } from './after-loss.js';

it('the loss of a topic is repaired once for all of its partitions, and again after a failure', async () => {
  const consumers = new Consumers();
  const { promise: repaired, resolve } = Promise.withResolvers<void>();
  let attempts = 0;
  const stop = afterLossOf('facts', { consumers, log: createLog('test', 'silent') }, async () => {
    attempts += 1;
    if (attempts === 1) throw new Error('the catalog is down');
    resolve();
    return { emitters: 2 };
  });
  await consumers.replaced('events');
  expect(attempts).toBe(0);
  void consumers.replaced('facts');
  const loss = consumers.replaced('facts');
  await repaired;
  expect(attempts).toBe(2);
  await loss;
  void consumers.replaced('facts');
  expect(attempts).toBe(3);
  stop();
});

it('a loss that is recognised while the service stops is left to the next process', async () => {
  const consumers = new Consumers();
  let attempts = 0;
  const stop = afterLossOf('facts', { consumers, log: createLog('test', 'silent') }, async () => ({ emitters: (attempts += 1) }));
  stop();
  let isRepaired = false;
  void consumers.replaced('facts').then(() => (isRepaired = true));
  await new Promise(setImmediate);
  expect([attempts, isRepaired]).toEqual([0, false]);
});
