import { describe, expect, it } from '@jest/globals';
import type { PropDefinition } from '#contracts';
import { checkPropValues, readSchedule } from './prop-values.js';

const timer = { name: 'timer', type: '$.interface.timer', default: { intervalSeconds: 900 } };
const check = (props: PropDefinition[], values: Record<string, unknown>, kept = {}) =>
  checkPropValues(props, values, { minSeconds: 1, kept });
const fields = (props: PropDefinition[], values: Record<string, unknown>) => check(props, values).problems.map(({ field }) => field);

describe('configured props', () => {
  const good: [string, PropDefinition[], Record<string, unknown>][] = [
    ['a string', [{ name: 'url', type: 'string' }], { url: 'x' }],
    ['an integer', [{ name: 'n', type: 'integer' }], { n: 3 }],
    ['a boolean', [{ name: 'b', type: 'boolean' }], { b: false }],
    ['an object', [{ name: 'o', type: 'object' }], { o: { a: 1 } }],
    ['anything', [{ name: 'a', type: 'any' }], { a: [1, 'x'] }],
    ['a list of strings', [{ name: 'l', type: 'string[]' }], { l: ['a', 'b'] }],
    ['an app', [{ name: 'app', type: 'app' }], { app: { $auth: { token: 't' } } }],
    ['no value for an optional prop', [{ name: 's', type: 'string', optional: true }], {}],
    ['no value for a prop with a default', [{ name: 's', type: 'string', default: '' }], {}],
    ['no value for an app', [{ name: 'app', type: 'app' }], {}],
    [
      'nothing for a database and an endpoint',
      [
        { name: 'db', type: '$.service.db' },
        { name: 'http', type: '$.interface.http' },
      ],
      {},
    ],
    ['a timer by its default', [timer], {}],
  ];
  it.each(good)('accept %s', (_, props, values) => expect(check(props, values).problems).toEqual([]));

  const bad: [string, PropDefinition[], Record<string, unknown>, string[]][] = [
    ['an unknown name', [], { nope: 1 }, ['configured_props.nope']],
    ['a missing required prop', [{ name: 'url', type: 'string' }], {}, ['configured_props.url']],
    ['null for a required prop', [{ name: 'url', type: 'string' }], { url: null }, ['configured_props.url']],
    ['a number for a string', [{ name: 'url', type: 'string' }], { url: 1 }, ['configured_props.url']],
    ['a fraction for an integer', [{ name: 'n', type: 'integer' }], { n: 1.5 }, ['configured_props.n']],
    ['a string for a boolean', [{ name: 'b', type: 'boolean' }], { b: 'true' }, ['configured_props.b']],
    ['a list for an object', [{ name: 'o', type: 'object' }], { o: [] }, ['configured_props.o']],
    ['a list with a wrong item', [{ name: 'l', type: 'string[]' }], { l: ['a', 1] }, ['configured_props.l']],
    ['a single value for a list', [{ name: 'l', type: 'string[]' }], { l: 'a' }, ['configured_props.l']],
    ['a timer without a schedule', [{ name: 't', type: '$.interface.timer' }], {}, ['configured_props.t']],
    ['an interface of another kind', [{ name: 'hook', type: '$.interface.apphook' }], {}, ['configured_props.hook']],
    [
      'two bad props, each',
      [
        { name: 'a', type: 'string' },
        { name: 'b', type: 'integer' },
      ],
      { b: 'x' },
      ['configured_props.a', 'configured_props.b'],
    ],
  ];
  it.each(bad)('refuse %s', (_, props, values, expected) => expect(fields(props, values)).toEqual(expected));

  it('larger than 64 KB are refused', () => {
    expect(fields([{ name: 's', type: 'string' }], { s: 'x'.repeat(65_537) })).toEqual(['configured_props']);
  });

  it('give each timer its schedule', () => {
    expect(check([timer], { timer: { cron: '0 9 * * *', timezone: 'Europe/Berlin' } }).schedules).toEqual({
      timer: { cron: '0 9 * * *', interval_seconds: null, timezone: 'Europe/Berlin' },
    });
    expect(check([timer], {}).schedules).toEqual({ timer: { cron: null, interval_seconds: 900 } });
  });

  it('keep the schedule of a running source when only the default in the code has changed', () => {
    const kept = { timer: { cron: null, interval_seconds: 60 } as const };
    expect(check([timer], {}, kept).schedules).toEqual(kept);
    expect(check([timer], { timer: { intervalSeconds: 30 } }, kept).schedules).toEqual({ timer: { cron: null, interval_seconds: 30 } });
  });
});

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
