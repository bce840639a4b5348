import { describe, expect, it } from '@jest/globals';
import { niceness, ProcessPriority } from './process-priority.js';

const tickMs = 100;

/** The nice values of a process that uses these shares of a CPU, each for this many seconds. */
function niceOf(...phases: [share: number, seconds: number][]): number[] {
  const applied: number[] = [];
  const priority = new ProcessPriority(1, (_pid, nice) => applied.push(nice) > 0);
  let [at, cpuMs] = [0, 0];
  for (const [share, seconds] of phases) {
    const end = at + seconds * 1000;
    for (; at < end; at += tickMs) {
      priority.note(cpuMs, at);
      cpuMs += share * tickMs;
    }
  }
  return applied;
}

describe('the priority of a process of components', () => {
  it.each([
    ['is ordinary for short runs', [[0.1, 60]], [niceness.ordinary]],
    [
      'is ordinary for a moment of computing',
      [
        [1, 0.3],
        [0.1, 10],
      ],
      [niceness.ordinary],
    ],
    ['is low while it computes', [[1, 10]], [niceness.ordinary, niceness.heavy]],
    [
      'is ordinary again after that',
      [
        [1, 10],
        [0.1, 10],
      ],
      [niceness.ordinary, niceness.heavy, niceness.ordinary],
    ],
    [
      'does not flap between the two values',
      [
        [1, 5],
        [0.4, 5],
        [1, 5],
      ],
      [niceness.ordinary, niceness.heavy],
    ],
  ] as [string, [number, number][], number[]][])('%s', (_, phases, expected) => {
    expect(niceOf(...phases)).toEqual(expected);
  });

  it('is low from the beginning for a process that replaces one that computed, until it uses less', () => {
    const applied: number[] = [];
    const priority = new ProcessPriority(1, (_pid, nice) => applied.push(nice) > 0);
    priority.expectHeavy();
    expect(priority.isHeavy).toBe(true);
    for (let at = 0; at < 3000; at += tickMs) priority.note(0, at);
    expect([priority.isHeavy, applied]).toEqual([false, [niceness.ordinary, niceness.heavy, niceness.ordinary]]);
  });

  it('stays ordinary for bursts of computing with pauses in between', () => {
    const applied: number[] = [];
    const priority = new ProcessPriority(1, (_pid, nice) => applied.push(nice) > 0);
    // 200 ms of computing every 2 s
    for (let run = 0; run < 20; run++) for (const tick of [0, 100, 200]) priority.note(run * 200 + tick, run * 2000 + tick);
    expect(applied).toEqual([niceness.ordinary]);
  });

  it('is set again after it could not be set', () => {
    const applied: number[] = [];
    const priority = new ProcessPriority(1, (_pid, nice) => applied.push(nice) > 1);
    for (const tick of [0, 100, 200]) priority.note(0, tick);
    expect(applied).toEqual([niceness.ordinary, niceness.ordinary]);
  });
});
