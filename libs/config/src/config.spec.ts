import { describe, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { boolean, checkConfig, choice, Config, ConfigError, duration, durations, integer, optional, port, text, timeout } from './index.js';

const description = 'A variable of the test.';

class Sample extends Config({
  name: text('NAME', { description }),
  note: optional(text('NOTE', { description })),
  password: optional(text('PASSWORD', { description, secret: true })),
  size: integer('SIZE', { fallback: 10, min: 1, max: 20, description }),
  port: port('PORT', { fallback: 3000, description }),
  on: boolean('ON', { fallback: false, description }),
  kind: choice('KIND', { words: ['one', 'two'], fallback: 'one', description }),
  wait: duration('WAIT', { fallback: '5s', description }),
  waits: durations('WAITS', { fallback: '5s,2m', description }),
}) {
  get double(): number {
    return this.size * 2;
  }
  problems(): string[] {
    return this.name === 'nobody' ? ['NAME must be somebody'] : [];
  }
}

const problems = (env: Record<string, string>): string[] => {
  try {
    Sample.read(env);
    return [];
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).problems;
  }
};

it('uses the defaults where a variable is absent or empty', () => {
  const sample = Sample.read({ NAME: 'x', SIZE: '', PASSWORD_FILE: '' });
  expect(sample).toBeInstanceOf(Sample);
  expect(sample).toMatchObject({
    name: 'x',
    note: undefined,
    password: undefined,
    size: 10,
    port: 3000,
    on: false,
    kind: 'one',
    wait: 5000,
  });
  expect(sample.waits).toEqual([5000, 120_000]);
  expect(sample.double).toBe(20);
});

it('accepts the words of a choice in any case', () => expect(Sample.read({ NAME: 'x', KIND: 'TWO' }).kind).toBe('two'));

it('describes the values that a variable accepts', () => {
  const most = integer('MOST', { fallback: 10, description });
  const accepted = [...Sample.variables, most].map(({ name, values }) => [name, values]);
  expect(Object.fromEntries(accepted)).toEqual({
    ...{ NAME: undefined, NOTE: undefined, PASSWORD: undefined },
    ...{ SIZE: '1 to 20', PORT: '1 to 65535', MOST: 'at least 0', ON: '`true`, `false`', KIND: '`one`, `two`' },
    ...{ WAIT: 'at most 1000d', WAITS: 'each at most 1000d' },
  });
});

it('names every bad variable at once', () =>
  expect(problems({ SIZE: '21', PORT: '0', ON: 'yes', KIND: 'three', WAIT: '5', WAITS: '5s,x' })).toEqual([
    'NAME is required',
    'SIZE must be a whole number from 1 to 20, not "21"',
    'PORT must be a whole number from 1 to 65535, not "0"',
    'ON must be true or false, not "yes"',
    'KIND must be one of one, two, not "three"',
    'WAIT must be a duration such as 500ms, 5s, 30m, 2h or 5d, not "5"',
    'WAITS must list durations such as 5s,30m,2h, not "5s,x"',
  ]));

it('accepts no duration that is shorter than its minimum, such as 0', () => {
  class Durations extends Config({
    wait: timeout('WAIT', { fallback: '5s', min: '1ms', description }),
    kept: duration('KEPT', { fallback: '5s', min: '1s', description }),
    pause: timeout('PAUSE', { fallback: '5s', description }),
  }) {}
  expect(Durations.variables.map(({ values }) => values)).toEqual(['1ms to 20d', '1s to 1000d', 'at most 20d']);
  expect(Durations.read({ WAIT: '1ms', KEPT: '1s', PAUSE: '0s' })).toMatchObject({ wait: 1, kept: 1000, pause: 0 });
  expect(() => Durations.read({ WAIT: '0s', KEPT: '999ms' })).toThrow(
    new ConfigError(['WAIT must be at least 1ms, not "0s"', 'KEPT must be at least 1s, not "999ms"']),
  );
});

it('accepts no durations with which a timer or a date would be wrong', () => {
  class Durations extends Config({
    wait: timeout('WAIT', { fallback: '5s', description }),
    kept: duration('KEPT', { fallback: '5s', description }),
    waits: durations('WAITS', { fallback: '5s', description }),
  }) {}
  expect(Durations.read({ WAIT: '20d', KEPT: '1000d', WAITS: '5s,1000d' }).wait).toBe(20 * 86_400_000);
  expect(() => Durations.read({ WAIT: '21d', KEPT: '1001d', WAITS: '5s,1001d' })).toThrow(
    new ConfigError([
      'WAIT must be at most 20d, not "21d"',
      'KEPT must be at most 1000d, not "1001d"',
      'WAITS must list durations of at most 1000d, not "5s,1001d"',
    ]),
  );
});

it('rounds durations to whole milliseconds', () =>
  expect(Sample.read({ NAME: 'x', WAIT: '1.005s', WAITS: '0.3ms,0.07m,250.5ms' })).toMatchObject({ wait: 1005, waits: [0, 4200, 251] }));

it('does not read blanks as the number 0', () => {
  class Limit extends Config({ most: integer('MOST', { fallback: 10, description }) }) {}
  expect(() => Limit.read({ MOST: ' ' })).toThrow('MOST must be a whole number of at least 0, not " "');
});

it('applies rules about several variables once each is right by itself', () => {
  expect(problems({ NAME: 'nobody' })).toEqual(['NAME must be somebody']);
  expect(problems({ NAME: 'nobody', SIZE: 'x' })).toHaveLength(1);
});

it('reports a problem that several parts share only once', () => {
  class Other extends Config({ size: integer('SIZE', { fallback: 10, min: 1, max: 20, description }) }) {}
  expect(() => checkConfig([Sample, Other], { NAME: 'x', SIZE: '0' })).toThrow(
    new ConfigError(['SIZE must be a whole number from 1 to 20, not "0"']),
  );
});

describe('a secret', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-config-'));
  const file = join(folder, 'password');
  writeFileSync(file, 'open sesame\n');

  it('can be in a file, without its last line break', () =>
    expect(Sample.read({ NAME: 'x', PASSWORD_FILE: file }).password).toBe('open sesame'));

  it('is rejected when it is given twice', () =>
    expect(problems({ NAME: 'x', PASSWORD: 'a', PASSWORD_FILE: file })).toEqual([
      'PASSWORD and PASSWORD_FILE are both set; set only one of them',
    ]));

  it('is rejected when its file cannot be read', () => {
    rmSync(folder, { recursive: true });
    expect(problems({ NAME: 'x', PASSWORD_FILE: file })).toEqual([
      `PASSWORD cannot be read from PASSWORD_FILE: ENOENT: no such file or directory, open '${file}'`,
    ]);
  });

  it('may not be in a file where the variable is not a secret', () => expect(problems({ NAME_FILE: file })).toEqual(['NAME is required']));
});
