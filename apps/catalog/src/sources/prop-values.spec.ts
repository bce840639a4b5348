import { cpuSeconds } from '#testing';
import { describe, expect, it } from '@jest/globals';
import type { PropDefinition } from '#contracts';
import { checkPropValues, readSchedule } from './prop-values.js';

const timer = { name: 'timer', type: '$.interface.timer', default: { intervalSeconds: 900 } };
const check = (props: PropDefinition[], values: Record<string, unknown>, kept = {}) =>
  checkPropValues(props, values, { minSeconds: 1, kept });
const fields = (props: PropDefinition[], values: Record<string, unknown>) => check(props, values).problems.map(({ field }) => field);

const made = [
  { name: 'db', type: '$.service.db' },
  { name: 'http', type: '$.interface.http' },
];

describe('configured props', () => {
  const good: [string, PropDefinition[], Record<string, unknown>][] = [
    ['a string', [{ name: 'url', type: 'string' }], { url: 'x' }],
    ['an integer', [{ name: 'n', type: 'integer' }], { n: 3 }],
    ['a boolean', [{ name: 'b', type: 'boolean' }], { b: false }],
    ['an object', [{ name: 'o', type: 'object' }], { o: { a: 1 } }],
    ['anything', [{ name: 'a', type: 'any' }], { a: [1, 'x'] }],
    ['a list of strings', [{ name: 'l', type: 'string[]' }], { l: ['a', 'b'] }],
    ['an app', [{ name: 'app', type: 'app' }], { app: { $auth: { token: 't' } } }],
    ['a connection for an app', [{ name: 'app', type: 'app' }], { app: { authProvisionId: 'apn_1' } }],
    ['an app as responses show it', [{ name: 'app', type: 'app' }], { app: { authProvisionId: 'apn_1', $auth: { token: '••••••••' } } }],
    ['an app whose connection has no credentials', [{ name: 'app', type: 'app' }], { app: { authProvisionId: 'apn_1', $auth: {} } }],
    ['a timer as responses show it', [timer], { timer: { cron: null, interval_seconds: 60, timezone: null } }],
    ['a default with a field that has no effect', [{ ...timer, default: { intervalSeconds: 60, timezone: 'UTC', x: 1 } }], {}],
    ['no value for an optional prop', [{ name: 's', type: 'string', optional: true }], {}],
    ['no value for a prop with a default', [{ name: 's', type: 'string', default: '' }], {}],
    ['no value for an app', [{ name: 'app', type: 'app' }], {}],
    ['an app without credentials', [{ name: 'app', type: 'app' }], { app: { authProvisionId: null, $auth: {} } }],
    ['nothing for a database and an endpoint', made, {}],
    ['null for a database and an endpoint', made, { db: null, http: null }],
    ['an endpoint as responses show it', made, { http: { endpoint_url: 'https://in.test/x' } }],
    ['an endpoint as responses show it to a key that may not read secrets', made, { http: {} }],
    ['an endpoint without a URL as responses show it', made, { http: { endpoint_url: null } }],
    ['a timer by its default', [timer], {}],
  ];
  it.each<[string, PropDefinition, unknown]>([
    ['one that the component lists', { name: 'id', type: 'string', options: [{ label: 'Minutes', value: 60_000 }] }, 60_000],
    ['one that options() returns', { name: 'id', type: 'string', remoteOptions: true }, 7],
    ['several', { name: 'id', type: 'string[]', remoteOptions: true }, [7, 'a']],
  ])('accept a number for a string with options: %s', (_, prop, value) => expect(check([prop], { id: value }).problems).toEqual([]));

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
    ['a value for a database', made, { db: 'x' }, ['configured_props.db']],
    ['a number for an endpoint', made, { http: 5 }, ['configured_props.http']],
    ['a URL for an endpoint', made, { http: 'https://in.test/x' }, ['configured_props.http']],
    ['an endpoint with another field', made, { http: { endpoint_url: 'https://in.test/x', path: '/' } }, ['configured_props.http']],
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

  it.each([
    [{ token: 't' }, 'has the unknown field "token"; known are authProvisionId, $auth'],
    [{ authProvisionID: 'apn_1' }, 'has the unknown field "authProvisionID"; did you mean authProvisionId?'],
    [{ auth: { token: 't' } }, 'has the unknown field "auth"; did you mean $auth?'],
    [{ $auth: 'token' }, 'must have an object as $auth'],
    [['apn_1'], 'must be an object with authProvisionId or $auth'],
  ])('refuse %j for an app', (app, problem) =>
    expect(check([{ name: 'app', type: 'app' }], { app }).problems.map(({ message }) => message)).toEqual([
      `configured_props.app ${problem}`,
    ]),
  );

  it.each([
    [{ cron: '0 9 * * *', timeZone: 'Europe/Berlin' }, 'has the unknown field "timeZone"; did you mean timezone?'],
    [{ cron: '0 9 * * *', tz: 'Europe/Berlin' }, 'has the unknown field "tz"; known are intervalSeconds, interval_seconds, cron, timezone'],
    [{ intervalSeconds: 60, timezone: 'Europe/Berlin' }, 'must have a timezone only with cron'],
  ])('refuse %j for a timer', (value, problem) =>
    expect(check([timer], { timer: value }).problems.map(({ message }) => message)).toEqual([`configured_props.timer ${problem}`]),
  );

  it('larger than 64 KB are refused', () => {
    expect(fields([], Object.fromEntries(Array.from({ length: 130_000 }, (_, n) => [`p${n}`, 0])))).toEqual(['configured_props']);
    expect(fields([{ name: 's', type: 'string' }], { s: 'x'.repeat(65_537) })).toEqual(['configured_props']);
  });

  it('are checked in no time if a default in the code is a cron expression of a quarter of a megabyte', async () => {
    const cron = `* * * * * * ${Array(35_000).fill('1-9999').join(',')}`;
    const checked = () => check([{ ...timer, default: { cron } }], {});
    expect(await cpuSeconds(checked)).toBeLessThan(0.5);
    expect(checked().problems).toEqual([
      { field: 'configured_props.timer', message: 'configured_props.timer must have a cron expression of at most 256 characters' },
    ]);
  });

  describe('with many timers', () => {
    const timers = (count: number, more: Partial<PropDefinition> = {}): PropDefinition[] =>
      Array.from({ length: count }, (_, n) => ({ name: `t${n}`, type: '$.interface.timer', ...more }));
    const rare = { cron: '59 59 23 29 2 +1#5', timezone: 'America/New_York' };
    const values = (count: number) => Object.fromEntries(timers(count).map(({ name }) => [name, rare]));

    it('are refused if more than 20 have a value or a default, before a cron expression is parsed', async () => {
      const checked = () => [check(timers(500, { default: rare }), {}), check(timers(21), values(21))];
      expect(await cpuSeconds(checked)).toBeLessThan(0.1);
      expect(checked().map(({ problems }) => problems)).toEqual(
        [500, 21].map((count) => [
          {
            field: 'configured_props',
            message: `configured_props have ${count} timers, with those that the component sets by default; the limit is 20`,
          },
        ]),
      );
    });

    it('are accepted if at most 20 of them have a value', () =>
      expect(Object.keys(check(timers(500, { optional: true }), values(20)).schedules)).toHaveLength(20));

    it('count those that the source keeps', () => {
      const kept = Object.fromEntries(timers(1).map(({ name }) => [name, { interval_seconds: 60, cron: null } as const]));
      const { t0: _, ...others } = values(21);
      expect(check(timers(21), others, kept).problems).toHaveLength(1);
    });
  });

  it('a source that has more timers from before the limit can be changed', () => {
    const props = Array.from({ length: 21 }, (_, n): PropDefinition => ({ name: `t${n}`, type: '$.interface.timer' }));
    const kept = Object.fromEntries(props.map(({ name }) => [name, { interval_seconds: 60, cron: null } as const]));
    expect(check(props, {}, kept)).toMatchObject({ schedules: kept, problems: [] });
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
    expect(check([timer], { timer: { intervalSeconds: 30 } }).schedules).toEqual({ timer: { cron: null, interval_seconds: 30 } });
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
    [{ intervalSeconds: 2 ** 31 }, 'at most 2147483647'],
    [{ intervalSeconds: '60' }, 'an integer'],
    [{ intervalSeconds: 60, cron: '* * * * *' }, 'not both'],
    [{ cron: 'sometimes' }, 'invalid cron'],
    [{ cron: 5 }, 'a string as cron'],
    [{ cron: '* * * * *', timezone: 'Mars/Olympus' }, 'invalid cron expression or timezone'],
    [{ cron: '0 0 30 2 *' }, 'never matches'],
    [{ cron: `* * * * ${'1,'.repeat(200)}1` }, 'at most 256 characters'],
    [{ cron: '0 0 0 1 1 * 2099' }, 'five fields'],
  ])('refuses %j', (value, why) => expect(readSchedule(value, 1)).toContain(why));
});
