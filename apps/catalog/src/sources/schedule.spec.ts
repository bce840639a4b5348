import { describe, expect, it } from '@jest/globals';
import { readSchedule } from './schedule.js';

describe('readSchedule', () => {
  it.each([
    [{ intervalSeconds: 60 }, { interval_seconds: 60, cron: null }],
    [
      { cron: null, interval_seconds: 60 },
      { interval_seconds: 60, cron: null },
    ],
    [{ cron: '*/5 * * * *' }, { interval_seconds: null, cron: '*/5 * * * *' }],
    [
      { cron: '0 9 * * 1-5', timezone: 'Europe/Berlin' },
      { interval_seconds: null, cron: '0 9 * * 1-5', timezone: 'Europe/Berlin' },
    ],
  ])('reads %j', (value, schedule) => expect(readSchedule(value, 1)).toEqual(schedule));

  it.each([
    [null, 'an object'],
    ['every minute', 'an object'],
    [{}, 'an object'],
    [{ intervalSeconds: 0 }, 'at least 1'],
    [{ intervalSeconds: 1.5 }, 'an integer'],
    [{ intervalSeconds: '60' }, 'an integer'],
    [{ intervalSeconds: 60, cron: '* * * * *' }, 'not both'],
    [{ cron: 'sometimes' }, 'invalid cron'],
    [{ cron: 5 }, 'a string as cron'],
    [{ cron: '* * * * *', timezone: 'Mars/Olympus' }, 'invalid cron expression or timezone'],
    [{ cron: '0 0 30 2 *' }, 'never matches'],
  ])('refuses %j', (value, why) => expect(readSchedule(value, 1)).toContain(why));
});
