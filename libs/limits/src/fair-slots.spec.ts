import { afterEach, describe, expect, it } from '@jest/globals';
import { FairSlots } from './fair-slots.js';

const limits = { atATime: 4, atATimePerAccount: 2, waitingPerAccount: 3, waiting: 5 };
const later = Date.now() + 1e6;

const worlds: { endAll: () => Promise<void> }[] = [];

// work that still waits has a timer, which would keep the process of the tests alive
afterEach(async () => {
  for (const { endAll } of worlds.splice(0)) await endAll();
});

/** Work that continues until the test ends it. */
function world() {
  const slots = new FairSlots(limits);
  const running: { name: string; end: () => void }[] = [];
  const ask = (name: string, until = later): Promise<string> =>
    slots
      .use(name[0]!, until, () => new Promise<void>((resolve) => void running.push({ name, end: resolve })))
      .then(
        () => 'done',
        (error: Error) => error.name,
      );
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const endAll = async (): Promise<void> => {
    while (running.length > 0) {
      for (const { end } of running.splice(0)) end();
      await settle();
    }
  };
  worlds.push({ endAll });
  return {
    slots,
    ask,
    names: async () => (await settle(), running.map(({ name }) => name)),
    end: async (name: string) => {
      running
        .splice(
          running.findIndex((each) => each.name === name),
          1,
        )[0]!
        .end();
      await settle();
    },
  };
}

describe('fair slots', () => {
  it('give an account no more than its share, and leave the others theirs', async () => {
    const { ask, names } = world();
    for (const name of ['a1', 'a2', 'a3', 'a4']) void ask(name);
    void ask('b1');
    expect(await names()).toEqual(['a1', 'a2', 'b1']);
  });

  it('let the accounts take turns', async () => {
    const { ask, names, end } = world();
    for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1', 'd1']) void ask(name);
    expect(await names()).toEqual(['a1', 'a2', 'b1', 'b2']);
    for (const name of ['a1', 'b1', 'a2', 'c1']) await end(name);
    expect(await names()).toEqual(['b2', 'a3', 'd1', 'a4']);
  });

  it('refuse work of an account that has too much waiting', async () => {
    const { ask } = world();
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) void ask(name);
    expect(await ask('a6')).toBe('TooMuchWaiting');
  });

  it('shorten the longest queue when too much waits in total', async () => {
    const { ask, slots, names, end } = world();
    for (const name of ['a1', 'a2', 'b1', 'b2', 'a3', 'a4']) void ask(name);
    const a5 = ask('a5');
    for (const name of ['c1', 'd1']) void ask(name);
    expect(slots.waiting).toBe(5);
    void ask('e1');
    expect(await a5).toBe('TooMuchWaiting');
    for (const name of ['a1', 'b1']) await end(name);
    expect(await names()).toEqual(['a2', 'b2', 'a3', 'c1']);
  });

  it('drop work that nobody waits for', async () => {
    const { ask, names, end } = world();
    for (const name of ['a1', 'a2']) void ask(name);
    const gone = ask('a3', Date.now() + 5);
    expect(await gone).toBe('CallerGone');
    expect(await ask('b1', Date.now() - 1)).toBe('CallerGone');
    void ask('a4');
    await end('a1');
    expect(await names()).toEqual(['a2', 'a4']);
  });

  it('are free again after work that failed', async () => {
    const slots = new FairSlots({ ...limits, atATime: 1 });
    await expect(slots.use('a', later, async () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await slots.use('a', later, async () => 1)).toBe(1);
  });
});
