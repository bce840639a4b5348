import { cpuSeconds } from '#testing';
import { describe, expect, it, jest } from '@jest/globals';
import { nextCron } from './cron.js';

const after = new Date('2026-03-01T10:00:00Z');
const next = (cron: string, timezone?: string) => nextCron(cron, timezone, after)?.toISOString() ?? null;

describe('the next time of a cron expression', () => {
  it.each([
    ['*/5 * * * *', undefined, '2026-03-01T10:05:00.000Z'],
    ['30 * * * * *', undefined, '2026-03-01T10:00:30.000Z'],
    ['  0   9 * * 1-5 ', 'Europe/Berlin', '2026-03-02T08:00:00.000Z'],
    ['0 0 1 1 *', 'Pacific/Auckland', '2026-12-31T11:00:00.000Z'],
    ['@daily', undefined, '2026-03-02T00:00:00.000Z'],
    ['7/20 * * * *', undefined, '2026-03-01T10:07:00.000Z'],
    ['27/20 * * * *', undefined, '2026-03-01T10:27:00.000Z'],
    ['0 0 29 2 +1', undefined, '2044-02-29T00:00:00.000Z'],
    ['0 0 30 2 *', undefined, null],
    ['0 9 * * *', 'europe/BERLIN', '2026-03-02T08:00:00.000Z'],
    ['0 9 * * *', 'US/Eastern', '2026-03-01T14:00:00.000Z'],
    ['0 9 1 3 *', '+05:30', '2027-03-01T03:30:00.000Z'],
    ['0 9 * * *', '-0930', '2026-03-01T18:30:00.000Z'],
    ['0 9 * * *', '\u221209', '2026-03-01T18:00:00.000Z'],
    ['0 9 2 3 *', '+23:59', '2027-03-01T09:01:00.000Z'],
    ['0 9 * * *', '', '2026-03-02T09:00:00.000Z'],
  ])('%s in %s', (cron, timezone, expected) => expect(next(cron, timezone)).toBe(expected));

  it('is found for each weekday of a leap day, even if a century without one is between', () => {
    for (let year = 2068; year <= 2100; year += 4)
      for (const weekday of [0, 1, 2, 3, 4, 5, 6])
        expect(nextCron(`0 0 29 2 +${weekday}`, null, new Date(Date.UTC(year, 2)))).not.toBeNull();
  });

  it.each([
    ['sometimes', undefined, 'five fields'],
    ['constructor', undefined, 'five fields'],
    ['__proto__', undefined, 'five fields'],
    ['0 0 0 1 1 * 2030', undefined, 'five fields'],
    ['60 * * * *', undefined, 'minute'],
    ['0 22-2 * * *', undefined, 'larger'],
    ['* * * * *', 'Mars/Olympus', "'mars/olympus'"],
    ['* * * * *', '+24:00', "'+24:00'"],
    ['* * * * *', '+5:30', "'+5:30'"],
    ['* * * * *', 'x'.repeat(65), 'at most 64 characters'],
    [`* * * * ${Array(200).fill('1').join(',')}`, undefined, 'at most 256 characters'],
  ])('is refused for %s in %s', (cron, timezone, why) => expect(() => next(cron, timezone)).toThrow(why));

  it.each([
    ['0 0 1 * 1', ['2026-03-02', '2026-03-09', '2026-03-16', '2026-03-23', '2026-03-30', '2026-04-01']],
    ['0 0 1-7 * +mon', ['2026-03-02', '2026-04-06']],
    ['0 0 ? * fri', ['2026-03-06', '2026-03-13']],
    ['0 0 L * *', ['2026-03-31', '2026-04-30']],
    ['0 0 LW * *', ['2026-03-31', '2026-04-30', '2026-05-29']],
    ['0 0 15W * *', ['2026-03-16', '2026-04-15', '2026-05-15', '2026-06-15', '2026-07-15', '2026-08-14']],
    ['0 0 * * 5#2', ['2026-03-13', '2026-04-10']],
    ['0 0 * * 5L', ['2026-03-27', '2026-04-24']],
    ['0 0 * * 7', ['2026-03-08', '2026-03-15']],
    ['@weekly', ['2026-03-08', '2026-03-15']],
  ])('%s comes on the days %j', (cron, days) => {
    let time = after;
    expect(days.map(() => (time = nextCron(cron, 'UTC', time)!).toISOString().slice(0, 10))).toEqual(days);
  });

  // Berlin: 02:00 to 03:00 is skipped, and repeated; Cairo: 00:00 to 01:00, and 23:00 to 00:00; Lord Howe: 02:00 to 02:30, and 01:30 to 02:00
  it.each([
    ['30 2 * * *', 'Europe/Berlin', '2026-03-29', ['01:00']],
    ['0 2,14 * * *', 'Europe/Berlin', '2026-03-29', ['01:00', '12:00']],
    ['0,30 2 * * *', 'Europe/Berlin', '2026-03-29', ['01:00']],
    ['0 2-3 * * *', 'Europe/Berlin', '2026-03-29', ['01:00']],
    ['*/15 2 * * *', 'Europe/Berlin', '2026-03-29', []],
    ['30 2 * * *', 'Europe/Berlin', '2026-10-25', ['00:30']],
    ['0 2,14 * * *', 'Europe/Berlin', '2026-10-25', ['00:00', '13:00']],
    ['0,30 2 * * *', 'Europe/Berlin', '2026-10-25', ['00:00', '00:30']],
    ['0 2-3 * * *', 'Europe/Berlin', '2026-10-25', ['00:00', '02:00']],
    ['*/30 2 * * *', 'Europe/Berlin', '2026-10-25', ['00:00', '00:30', '01:00', '01:30']],
    ['0 0,12 * * *', 'Africa/Cairo', '2027-04-29', ['10:00', '22:00']],
    ['45 0,23 * * *', 'Africa/Cairo', '2027-04-29', ['21:45', '22:00']],
    ['45 0,23 * * *', 'Africa/Cairo', '2026-10-29', ['20:45', '22:45']],
    ['0 2,14 * * *', 'Australia/Lord_Howe', '2026-10-03', ['03:30', '15:30']],
    ['0 2,14 * * *', 'Australia/Lord_Howe', '2026-10-04', ['03:00', '15:00']],
    ['45 1,3 * * *', 'Australia/Lord_Howe', '2027-04-03', ['14:45', '17:15']],
    ['*/15 1 * * *', 'Australia/Lord_Howe', '2027-04-03', ['14:00', '14:15', '14:30', '14:45', '15:00', '15:15']],
  ])('%s in %s, when clocks change, comes on %s at %j', (cron, zone, day, times) => {
    const found: string[] = [];
    for (let time = new Date(Date.parse(day) - 1); ;) {
      time = nextCron(cron, zone, time)!;
      const [date, at] = time.toISOString().split('T');
      if (date !== day) break;
      found.push(at!.slice(0, 5));
    }
    expect(found).toEqual(times);
  });

  it.each(['2026-10-25T00:15:00Z', '2026-10-25T01:15:00Z'])(
    'is not between the occurrences of a time that is repeated and comes once, after %s',
    (time) => expect(nextCron('0,10 2,3 * * *', 'Europe/Berlin', new Date(time))?.toISOString()).toBe('2026-10-25T02:00:00.000Z'),
  );

  it('is found without memory for each spelling of a time zone, and for each offset', () => {
    const [name, minutes] = ['america/argentina/comodrivadavia', 24 * 60];
    const spelling = (n: number) => [...name].map((letter, i) => (n & (1 << i) ? letter.toUpperCase() : letter)).join('');
    const offset = (n: number) =>
      `${n < minutes ? '+' : '-'}${String(Math.floor((n % minutes) / 60)).padStart(2, '0')}:${String(n % 60).padStart(2, '0')}`;
    const formats = jest.spyOn(Intl, 'DateTimeFormat');
    for (let n = 0; n < 1000; n++) next('0 9 * * *', spelling(n));
    for (let n = 0; n < 2 * minutes; n++) next('0 9 * * *', offset(n));
    expect(formats.mock.calls.length).toBeLessThanOrEqual(2);
    formats.mockRestore();
  });

  it('is found in little CPU time, even for dates that do not exist', async () => {
    const slow = [...'0 59 * 0-58/2'.split(' ')].flatMap((second) =>
      ['31', '30W', 'LW', '29'].flatMap((day) =>
        ['2,4,6,9,11', '2'].flatMap((month) =>
          ['+1#5', '+0#L', '*'].map((weekday) => [second, second, '23', day, month, weekday].join(' ')),
        ),
      ),
    );
    expect((await cpuSeconds(() => slow.map((cron) => next(cron)))) / slow.length).toBeLessThan(0.2);
  });
});
