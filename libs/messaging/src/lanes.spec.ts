import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Lanes } from './lanes.js';

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Tasks that end on demand; `running` shows those in progress. */
function stage(lanes: Lanes) {
  const running: string[] = [];
  const ended: string[] = [];
  const release = new Map<string, () => void>();
  const free = new Map<string, () => void>();
  const push = (name: string, lane: string, group?: string, tenant?: string, isUrgent?: boolean) =>
    lanes.push(
      {
        lane,
        isUrgent,
        group,
        tenant,
        run: async (releasePlace) => {
          running.push(name);
          free.set(name, releasePlace);
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
  return { running, ended, push, end, release: (name: string) => free.get(name)?.() };
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

  it('run the urgent tasks of a lane, in order, before its other tasks that have not begun', async () => {
    const { ended, push, end } = stage(new Lanes({ concurrency: 10 }));
    for (const name of ['1', '2']) push(name, 'a');
    for (const name of ['urgent 1', 'urgent 2']) push(name, 'a', undefined, undefined, true);
    push('3', 'a');
    for (const name of ['1', 'urgent 1', 'urgent 2', '2', '3']) await end(name);
    expect(ended).toEqual(['1', 'urgent 1', 'urgent 2', '2', '3']);
  });

  it('limit the concurrency of a group without delaying other groups', async () => {
    const { running, push, end } = stage(new Lanes({ concurrency: 10, groupConcurrency: 2 }));
    for (const n of [1, 2, 3]) push(`slow-${n}`, `slow-${n}`, 'slow');
    push('quick', 'quick', 'other');
    expect(running).toEqual(['slow-1', 'slow-2', 'quick']);
    await end('slow-2');
    expect(running).toEqual(['slow-1', 'quick', 'slow-3']);
  });

  it('let a group have more tasks in progress while no other group has work', async () => {
    const { running, push, end } = stage(new Lanes({ concurrency: 10, groupConcurrency: 1, loneGroupConcurrency: 3 }));
    for (const n of [1, 2, 3, 4]) push(`a${n}`, `a${n}`, 'a');
    expect(running).toEqual(['a1', 'a2', 'a3']);
    push('b1', 'b', 'b');
    push('b2', 'b', 'b');
    for (const name of ['a1', 'a2', 'b1']) await end(name);
    expect(running).toEqual(['a3', 'b2']);
    push('a5', 'a5', 'a');
    await end('a3');
    expect(running).toEqual(['b2', 'a4']);
    await end('b2');
    expect(running).toEqual(['a4', 'a5']);
  });

  it('limit the concurrency of a tenant with many groups, which take turns, without delaying other tenants', async () => {
    const { running, push, end } = stage(new Lanes({ concurrency: 10, groupConcurrency: 2, tenantConcurrency: 3 }));
    for (const group of ['a', 'b', 'c']) for (const n of [1, 2]) push(`${group}${n}`, `${group}${n}`, group, 'greedy');
    push('quick', 'quick', 'd', 'other');
    expect(running).toEqual(['a1', 'a2', 'b1', 'quick']);
    await end('a1');
    expect(running).toEqual(['a2', 'b1', 'quick', 'b2']);
    await end('b1');
    expect(running).toEqual(['a2', 'quick', 'b2', 'c1']);
    for (const name of ['a2', 'b2', 'c1', 'c2', 'quick']) await end(name);
    expect(running).toEqual([]);
    push('a3', 'a3', 'a', 'greedy');
    expect(running).toEqual(['a3']);
  });

  it('count the unfinished tasks of a tenant', async () => {
    const lanes = new Lanes({ concurrency: 10 });
    const { push, end, release } = stage(lanes);
    for (const n of [1, 2, 3]) push(`${n}`, `${n % 2}`, `${n}`, 'one');
    push('other', 'other', undefined, 'two');
    push('none', 'none');
    const counts = () => ['one', 'two', 'three'].map((tenant) => lanes.outstandingOf(tenant));
    expect(counts()).toEqual([3, 1, 0]);
    // it is unfinished until it has ended
    release('1');
    expect(counts()).toEqual([3, 1, 0]);
    await end('1');
    expect(counts()).toEqual([2, 1, 0]);
    for (const name of ['2', '3', 'other', 'none']) await end(name);
    expect(counts()).toEqual([0, 0, 0]);
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

  it('start a task of a tenant that has none in progress from the reserve, however many groups the others have', async () => {
    const { running, push, end } = stage(new Lanes({ concurrency: 2, reserve: 1 }));
    for (const n of [1, 2, 3, 4]) push(`greedy-${n}`, `greedy-${n}`, `greedy-${n}`, 'greedy');
    expect(running).toEqual(['greedy-1', 'greedy-2']);
    for (const n of [1, 2]) push(`small-${n}`, 'small', 'small', 'small');
    expect(running).toEqual(['greedy-1', 'greedy-2', 'small-1']);
    push('late', 'late', 'late', 'late');
    await end('small-1');
    expect(running).toEqual(['greedy-1', 'greedy-2', 'late']);
    await end('late');
    expect(running).toEqual(['greedy-1', 'greedy-2', 'small-2']);
  });

  it('start the task of another lane when one releases its place, and the next one of the same lane when it has ended', async () => {
    const { running, push, end, release } = stage(new Lanes({ concurrency: 2, groupConcurrency: 1 }));
    for (const name of ['a1', 'a2']) push(name, 'a', 'g');
    push('b1', 'b', 'g');
    push('c1', 'c', 'g');
    release('a1');
    release('a1');
    expect(running).toEqual(['a1', 'b1']);
    await end('a1');
    expect(running).toEqual(['b1']);
    await end('b1');
    expect(running).toEqual(['c1']);
    release('c1');
    expect(running).toEqual(['c1', 'a2']);
  });

  it('never exceed a limit, keep the order of a lane and end everything, whatever is released', async () => {
    const chosen = fc.array(fc.record({ lane: fc.nat(7), action: fc.constantFrom('push', 'release', 'end') }), { maxLength: 200 });
    await fc.assert(
      fc.asyncProperty(chosen, async (steps) => {
        const lanes = new Lanes({ concurrency: 4, groupConcurrency: 2, loneGroupConcurrency: 3, tenantConcurrency: 3, reserve: 1 });
        const inProgress: { name: number; lane: number; counts: boolean; release(): void; end(): void }[] = [];
        // those of a group that was alone stay in progress when others get work
        const most = [0, 0, 0];
        const begun = new Map<number, number[]>();
        const unfinished = Array.from({ length: 8 }, () => 0);
        let pushed = 0;
        const push = (lane: number) => {
          const name = pushed++;
          unfinished[lane]! += 1;
          const run = (release: () => void) => {
            begun.set(lane, [...(begun.get(lane) ?? []), name]);
            return new Promise<void>((end) => {
              inProgress.push({ name, lane, counts: true, release, end });
            });
          };
          lanes.push({ lane: `${lane}`, group: `${lane % 3}`, tenant: lane % 3 === 0 ? undefined : 'both', run }, () => {
            unfinished[lane]! -= 1;
          });
        };
        const check = () => {
          const counted = inProgress.filter(({ counts }) => counts);
          expect(counted.length).toBeLessThanOrEqual(5);
          for (const group of [0, 1, 2]) {
            const inGroup = counted.filter(({ lane }) => lane % 3 === group).length;
            const isAlone = unfinished.every((count, lane) => count === 0 || lane % 3 === group);
            most[group] = isAlone ? 3 : Math.max(2, Math.min(most[group]!, inGroup));
            expect(inGroup).toBeLessThanOrEqual(most[group]);
          }
          expect(counted.filter(({ lane }) => lane % 3 !== 0).length).toBeLessThanOrEqual(3);
          expect(new Set(inProgress.map(({ lane }) => lane)).size).toBe(inProgress.length);
        };
        const endFirst = async (lane?: number) => {
          const index = lane === undefined ? 0 : inProgress.findIndex((each) => each.lane === lane);
          inProgress.splice(index, 1)[0]?.end();
          await settle();
        };
        for (const { lane, action } of steps) {
          const current = inProgress.find((each) => each.lane === lane);
          if (action === 'push') push(lane);
          else if (action === 'end' && current) await endFirst(lane);
          else if (action === 'release' && current?.counts) {
            current.counts = false;
            current.release();
          }
          check();
        }
        while (inProgress.length > 0) await endFirst();
        expect(lanes.outstanding).toBe(0);
        for (const names of begun.values()) expect(names).toEqual(names.toSorted((a, b) => a - b));
      }),
    );
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

  it('retry a task that has failed at once when the pauses end', async () => {
    const lanes = new Lanes({ concurrency: 1 });
    let tries = 0;
    const run = async () => {
      if (++tries < 2) throw new Error('it fails');
    };
    lanes.push({ lane: 'a', run }, () => {});
    await settle();
    expect(tries).toBe(1);
    lanes.endPauses();
    await settle();
    expect(tries).toBe(2);
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
