import { describe, expect, it } from '@jest/globals';
import { MASK, type PropDefinition } from '#contracts';
import { keptSecrets, maskedValue } from './secret-props.js';

const OPEN: PropDefinition = { name: 'token', type: 'string' };
const SECRET: PropDefinition = { ...OPEN, secret: true };
const APP: PropDefinition = { name: 'token', type: 'app', app: 'slack' };

describe('a returned source', () => {
  it.each<[string, PropDefinition, unknown, unknown]>([
    ['masks a secret prop', SECRET, 'abc', MASK],
    ['masks a list of secrets', { ...SECRET, type: 'string[]' }, ['a', 'b'], MASK],
    ['shows that a secret prop has no value', SECRET, null, null],
    ['shows other props', OPEN, 'abc', 'abc'],
    ['shows the keys of credentials', APP, { $auth: { a: 'x', n: 5 }, more: 1 }, { $auth: { a: MASK, n: MASK }, more: 1 }],
    ['masks credentials that are not an object', APP, { $auth: 'x' }, { $auth: MASK }],
    ['shows an app prop without credentials', APP, { more: 1 }, { more: 1 }],
    ['masks a key named __proto__', APP, JSON.parse('{"$auth":{"__proto__":"x"}}'), JSON.parse(`{"$auth":{"__proto__":"${MASK}"}}`)],
  ])('%s', (_, prop, value, shown) => {
    expect(maskedValue(prop, value)).toEqual(shown);
  });
});

describe('a change', () => {
  const before = (prop: PropDefinition, value: unknown) => ({ props: [prop], values: { token: value } });
  const auth = (values: object) => ({ $auth: values });

  it.each<[string, PropDefinition, object | undefined, ReturnType<typeof before> | undefined, unknown]>([
    ['keeps a secret that is sent back masked', SECRET, { token: MASK }, before(SECRET, 'abc'), 'abc'],
    ['keeps all values if none are sent', SECRET, undefined, before(SECRET, 'abc'), 'abc'],
    ['replaces a secret', SECRET, { token: 'new' }, before(SECRET, 'abc'), 'new'],
    [
      'keeps credentials that are sent back masked',
      APP,
      { token: auth({ a: MASK, b: 'n' }) },
      before(APP, auth({ a: 'x' })),
      auth({ a: 'x', b: 'n' }),
    ],
    ['takes the mask literally where a prop was never secret', OPEN, { token: MASK }, before(OPEN, 'abc'), MASK],
    ['makes a prop secret', SECRET, undefined, before(OPEN, 'abc'), 'abc'],
    ['shows a former secret that is given again', OPEN, { token: 'abc' }, before(SECRET, 'abc'), 'abc'],
  ])('%s', (_, prop, given, old, expected) => {
    expect(keptSecrets([prop], given ? { given: given as Record<string, unknown> } : { given: {}, kept: old?.values }, old)).toEqual({
      values: { token: expected },
      problems: [],
    });
  });

  it.each<[string, PropDefinition, object | undefined, ReturnType<typeof before> | undefined, RegExp]>([
    ['a mask in a new source', SECRET, { token: MASK }, undefined, /token is a mask, and has no stored value: send the value itself$/],
    ['a mask of a prop that was not secret', SECRET, { token: MASK }, before(OPEN, 'abc'), /is a mask, and has no stored value/],
    [
      'masks in the credentials of a new source, as in a response',
      APP,
      { token: auth({ a: MASK, b: MASK, c: 'x' }) },
      undefined,
      /token has only a mask as \$auth\.a, \$auth\.b, and no stored value: send the value itself$/,
    ],
    [
      'a mask in a list',
      { ...SECRET, type: 'string[]' },
      { token: ['x', MASK] },
      before({ ...SECRET, type: 'string[]' }, ['x', 'y']),
      /among its items/,
    ],
    ['a mask of unknown credentials', APP, { token: auth({ b: MASK }) }, before(APP, auth({ a: 'x' })), /only a mask as \$auth\.b,/],
    ['a secret that would be shown', OPEN, undefined, before(SECRET, 'abc'), /is no longer secret: send its value again/],
    ['a masked secret that would be shown', OPEN, { token: MASK }, before(SECRET, 'abc'), /is no longer secret: send its value again/],
    [
      'credentials that would be shown',
      { ...OPEN, type: 'object' },
      undefined,
      before(APP, auth({ a: 'x' })),
      /is no longer secret: send its value again/,
    ],
    ['a secret that would become credentials', APP, undefined, before(SECRET, 'abc'), /is no longer secret: send its value again/],
  ])('is refused for %s', (_, prop, given, old, message) => {
    const { problems } = keptSecrets([prop], given ? { given: given as Record<string, unknown> } : { given: {}, kept: old?.values }, old);
    expect(problems).toEqual([{ field: 'configured_props.token', message: expect.stringMatching(message) }]);
  });
});
