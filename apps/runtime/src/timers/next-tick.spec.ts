import { describe, expect, it } from '@jest/globals';
import { nextTick } from './next-tick.js';

const at = (time: string) => new Date(`2026-03-01T${time}Z`);
const every = (seconds: number) => ({ interval_seconds: seconds, cron: null }) as const;

describe('nextTick', () => {
  it('is an interval after the last tick', () => expect(nextTick(every(60), at('10:00:00'), at('10:00:00.020'))).toEqual(at('10:01:00')));
  it('keeps the rhythm when a tick came late', () => expect(nextTick(every(60), at('10:00:00'), at('10:00:59'))).toEqual(at('10:01:00')));
  it('counts missed ticks as one', () => expect(nextTick(every(60), at('10:00:00'), at('12:34:10'))).toEqual(at('12:35:00')));
  it('is what the cron expression says, in UTC', () =>
    expect(nextTick({ interval_seconds: null, cron: '30 9 * * *' }, at('09:30:00'), at('09:30:00'))).toEqual(
      new Date('2026-03-02T09:30:00Z'),
    ));
  it('is what the cron expression says, in its time zone, also when summer time begins', () => {
    const schedule = { interval_seconds: null, cron: '30 9 * * *', timezone: 'Europe/Berlin' } as const;
    expect(nextTick(schedule, at('00:00:00'), at('00:00:00'))).toEqual(at('08:30:00'));
    expect(nextTick(schedule, new Date(), new Date('2026-03-29T12:00:00Z'))).toEqual(new Date('2026-03-30T07:30:00Z'));
  });
  it('never comes for a date that has passed', () =>
    expect(nextTick({ interval_seconds: null, cron: '0 0 0 1 1 * 2020' }, at('00:00:00'), at('00:00:00'))).toBeNull());
});
