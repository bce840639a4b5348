import { describe, expect, it } from '@jest/globals';
import { Lanes } from './lanes.js';

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Tasks that end on demand; `running` shows those in progress. */
function stage(lanes: Lanes) {
  const running: string[] = [];
  const ended: string[] = [];
  const release = new Map<string, () => void>();
  const push = (name: string, lane: string, group?: string) =>
    lanes.push(
      {
        lane,
        group,
        run: async () => {
          running.push(name);
          await new Promise<void>((resolve) => release.set(name, resolve));
          running.splice(running.indexOf(name), 1);
        },
      },
      () => ended.push(name),
    );
  const end = async (name: string) => {
    release.get(name)?.();
    await settle();
  };
  return { running, ended, push, end };
}

describe('Lanes', () => {
  it('run the tasks of a lane one at a time, in order, and different lanes concurrently', async () => {
    const { running, push, end } = stage(new Lanes({ concurrency: 10 }));
    push('a1', 'a');
    push('a2', 'a');
    push('b1', 'b');
    expect(running).toEqual(['a1', 'b1']);
    await end('a1');
    expect(running).toEqual(['b1', 'a2']);
  });

  it('limit the concurrency of a group without delaying other groups', async () => {
    const { running, push, end } = stage(new Lanes({ concurrency: 10, groupConcurrency: 2 }));
    for (const n of [1, 2, 3]) push(`slow-${n}`, `slow-${n}`, 'slow');
    push('quick', 'quick', 'other');
    expect(running).toEqual(['slow-1', 'slow-2', 'quick']);
    await end('slow-2');
    expect(running).toEqual(['slow-1', 'quick', 'slow-3']);
  });

  it('start a task of a group that has none in progress from the reserve when others use up the concurrency', async () => {
    const { running, push, end } = stage(new Lanes({ concurrency: 2, reserve: 2 }));
    for (const n of [1, 2, 3]) push(`greedy-${n}`, `greedy-${n}`, 'greedy');
    push('first-1', 'first', 'first');
    push('first-2', 'first', 'first');
    push('second', 'second', 'second');
    push('third', 'third', 'third');
    expect(running).toEqual(['greedy-1', 'greedy-2', 'first-1', 'second']);
    await end('first-1');
    expect(running).toEqual(['greedy-1', 'greedy-2', 'second', 'third']);
    await end('second');
    expect(running).toEqual(['greedy-1', 'greedy-2', 'third', 'first-2']);
  });

  it('limit the total concurrency', async () => {
    const lanes = new Lanes({ concurrency: 2 });
    const { running, push, end } = stage(lanes);
    for (const n of [1, 2, 3]) push(`t${n}`, `t${n}`);
    expect(running).toEqual(['t1', 't2']);
    await end('t1');
    expect(running).toEqual(['t2', 't3']);
    expect(lanes.outstanding).toBe(2);
  });

  it('take turns between the lanes of a group', async () => {
    const { running, push, end } = stage(new Lanes({ concurrency: 10, groupConcurrency: 1 }));
    for (const n of [1, 2]) push(`a${n}`, 'a', 'g');
    push('b1', 'b', 'g');
    await end('a1');
    expect(running).toEqual(['b1']);
  });

  it('retry a task that throws, and report each failure', async () => {
    const failures: unknown[] = [];
    const lanes = new Lanes({ concurrency: 1, onFailure: (error) => failures.push(error) });
    let tries = 0;
    await new Promise<void>((resolve) => {
      lanes.push(
        {
          lane: 'a',
          run: async () => {
            if (++tries < 2) throw new Error('not yet');
          },
        },
        resolve,
      );
    });
    expect(tries).toBe(2);
    expect(failures).toHaveLength(1);
  });

  it('report when they accept more tasks', async () => {
    const lanes = new Lanes({ concurrency: 1 });
    const { push, end } = stage(lanes);
    push('a', 'a');
    push('b', 'b');
    let isBelow = false;
    void lanes.waitUntilBelow(2).then(() => (isBelow = true));
    await settle();
    expect(isBelow).toBe(false);
    await end('a');
    expect(isBelow).toBe(true);
  });
});
