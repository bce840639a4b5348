import { cpuSeconds } from '#testing';
import { describe, expect, it } from '@jest/globals';
import { firstTick, nextTick, phaseOf } from './next-tick.js';

const at = (time: string) => new Date(`2026-03-01T${time}Z`);
const every = (seconds: number) => ({ interval_seconds: seconds, cron: null }) as const;
const cron = (expression: string, timezone?: string) => ({ interval_seconds: null, cron: expression, timezone }) as const;

describe('nextTick', () => {
  it('is an interval after the last tick', () =>
    expect(nextTick(every(60), 0.5, at('10:00:00'), at('10:00:00.020'))).toEqual(at('10:01:00')));
  it('keeps the rhythm when a tick came late', () =>
    expect(nextTick(every(60), 0, at('10:00:00'), at('10:00:59'))).toEqual(at('10:01:00')));
  it('counts missed ticks as one', () => expect(nextTick(every(60), 0, at('10:00:00'), at('12:34:10'))).toEqual(at('12:35:00')));
  it('matches the cron expression, in UTC', () =>
    expect(nextTick(cron('30 9 * * *'), 0, at('09:30:00'), at('09:30:00'))).toEqual(new Date('2026-03-02T09:30:00Z')));
  it('matches the cron expression in its time zone, also when summer time begins', () => {
    const schedule = cron('30 9 * * *', 'Europe/Berlin');
    expect(nextTick(schedule, 0, at('00:00:00'), at('00:00:00'))).toEqual(at('08:30:00'));
    expect(nextTick(schedule, 0, at('00:00:00'), new Date('2026-03-29T12:00:00Z'))).toEqual(new Date('2026-03-30T07:30:00Z'));
  });
  it('never comes for a date that does not exist', () =>
    expect(nextTick(cron('0 0 30 2 *'), 0, at('00:00:00'), at('00:00:00'))).toBeNull());
  it.each([
    ['an expression that is too long', cron(`* * * * * * ${Array(35_000).fill('1-9999').join(',')}`)],
    ['an unknown time zone', cron('* * * * *', 'Mars/Olympus')],
  ])('never comes for %s, and takes no time', async (_, schedule) => {
    expect(nextTick(schedule, 0, at('00:00:00'), at('00:00:00'))).toBeNull();
    const ticks = () => nextTick(schedule, 0, at('00:00:00'), at('00:00:00'));
    expect(await cpuSeconds(ticks)).toBeLessThan(0.5);
  });

  it('is in the second of the cron expression, at the share of the timer, and leaves none out', () => {
    const each = cron('* * * * * *');
    expect(nextTick(each, 0.9, at('10:00:00.900'), at('10:00:00.905'))).toEqual(at('10:00:01.900'));
    expect(nextTick(each, 0.9, at('10:00:00.900'), at('10:00:01.200'))).toEqual(at('10:00:01.900'));
    expect(nextTick(each, 0.9, at('10:00:00.900'), at('10:00:05.950'))).toEqual(at('10:00:06.900'));
  });
  it('does not come again if the clock was set back', () => {
    expect(nextTick(cron('0 * * * *'), 0, at('10:00:00'), at('09:59:59.900'))).toEqual(at('11:00:00'));
    expect(nextTick(every(60), 0, at('10:00:00'), at('09:59:59.900'))).toEqual(at('10:01:00'));
  });
});

describe('firstTick', () => {
  it.each<[number, number, string]>([
    [60, 0, '10:01:00'],
    [60, 0.5, '10:00:30'],
    [1, 0.999, '10:00:00.001'],
    [3600, 0.5, '10:59:30'],
  ])('a timer of %i s with a phase of %d first ticks at the next moment of its phase', (seconds, phase, expected) =>
    expect(firstTick(every(seconds), phase, at('10:00:00'))).toEqual(at(expected)),
  );
  it('the first tick of a cron expression is its next second', () =>
    expect(firstTick(cron('0 * * * *'), 0.25, at('10:20:00'))).toEqual(at('11:00:00.250')));
  it('spreads timers that are set in one moment over a minute', () => {
    const seconds = new Array<number>(60).fill(0);
    for (let n = 0; n < 6000; n++) {
      const tick = firstTick(every(60), phaseOf(`dc_${n}`, 'timer'), at('10:00:00'))!;
      seconds[Math.floor((tick.getTime() - at('10:00:00').getTime() - 1) / 1000)]! += 1;
    }
    expect(Math.min(...seconds)).toBeGreaterThan(50);
    expect(Math.max(...seconds)).toBeLessThan(150);
  });
});

describe('a very long interval', () => {
  const ticks = (seconds: number) => [
    firstTick(every(seconds), 0.5, at('10:00:00')),
    nextTick(every(seconds), 0.5, at('09:00:00'), at('10:00:00')),
  ];
  it('an interval of 68 years, the longest that is allowed, ticks after that time', () =>
    expect(ticks(2 ** 31 - 1).map((tick) => tick?.getUTCFullYear())).toEqual([2094, 2094]));
  it.each([2 ** 38, 2 ** 43, 2 ** 53])('an interval of %i s never ticks, and makes no invalid date', (seconds) =>
    expect(ticks(seconds)).toEqual([null, null]),
  );
});
