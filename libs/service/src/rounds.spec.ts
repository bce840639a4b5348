import { beforeEach, describe, expect, it } from '@jest/globals';
import { Rounds } from './rounds.js';

describe('a round', () => {
  let rounds: PromiseWithResolvers<void>[];
  let logged: unknown[];
  let one: Worker;

  class Worker {
    readonly log = { warn: (...line: unknown[]) => logged.push(line) };

    @Rounds(1000, 'work.failed')
    work(): Promise<void> {
      const round = Promise.withResolvers<void>();
      rounds.push(round);
      return round.promise;
    }
  }

  beforeEach(() => {
    [rounds, logged, one] = [[], [], new Worker()];
  });

  it('is scheduled at the interval that its decorator names', () => {
    const work = Object.getOwnPropertyDescriptor(Worker.prototype, 'work')!.value as object;
    expect(Reflect.getMetadata('SCHEDULE_INTERVAL_OPTIONS', work)).toEqual({ timeout: 1000 });
  });

  it('begins when the last one of its object has ended', async () => {
    const first = one.work();
    expect(one.work()).toBe(first);
    void new Worker().work();
    expect(rounds).toHaveLength(2);
    rounds[0]!.resolve();
    await first;
    void one.work();
    expect(rounds).toHaveLength(3);
  });

  it('is logged if it fails, and followed by the next one', async () => {
    const error = new Error('down');
    const failing = one.work();
    rounds[0]!.reject(error);
    await failing;
    expect(logged).toEqual([[{ err: error }, 'work.failed']]);
    void one.work();
    expect(rounds).toHaveLength(2);
  });
});
