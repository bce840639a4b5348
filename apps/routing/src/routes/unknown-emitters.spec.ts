import { expect, it } from '@jest/globals';
import { Lanes, type Task } from '#messaging';
import { UnknownEmitters } from './unknown-emitters.js';

it('the events of unknown emitters leave the places for attempts to others while the catalog is queried, and keep their order', async () => {
  const lanes = new Lanes({ concurrency: 4, reserve: 1 });
  const begun: string[] = [];
  const push = (task: Task) => lanes.push(task, () => {});
  const catalog = Promise.withResolvers<void>();
  const unknown = new UnknownEmitters({});
  const taskOf = (name: string): Task => ({ lane: name, run: async () => void begun.push(name) });
  const emit = (emitterId: `dc_${string}`, name: string) =>
    push(
      unknown.task({ emitterId, json: Buffer.from('1') }, async () => {
        await catalog.promise;
        return [taskOf(name)];
      }),
    );
  for (let n = 0; n < 10; n++) emit(`dc_${n}`, `first of ${n}`);
  emit('dc_0', 'second of 0');
  for (const name of ['a', 'b', 'c', 'd']) push({ ...taskOf(name), tenant: 'u_1' });
  await new Promise(setImmediate);
  expect(begun).toEqual(['a', 'b', 'c', 'd']);
  catalog.resolve();
  while (lanes.outstanding > 0) await new Promise(setImmediate);
  expect(begun.indexOf('second of 0')).toBeGreaterThan(begun.indexOf('first of 0'));
  expect(begun).toHaveLength(15);
});
