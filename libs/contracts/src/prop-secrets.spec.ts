import { expect, it } from '@jest/globals';
import { MASK, unmasked } from './prop-secrets.js';

it.each<[string, sent: string, stored: unknown, values: string, missing: string[]]>([
  ['replaces a mask by the stored value', `{"a":"${MASK}","b":2}`, { a: 1, c: 3 }, '{"a":1,"b":2}', []],
  ['names a mask for which nothing is stored', `{"a":"${MASK}"}`, undefined, '{}', ['a']],
  ['reads no inherited member', `{"constructor":"${MASK}"}`, {}, '{}', ['constructor']],
  ['replaces a mask under the name __proto__', `{"__proto__":"${MASK}"}`, JSON.parse('{"__proto__":1}'), '{"__proto__":1}', []],
])('%s', (_, sent, stored, values, missing) => {
  const result = unmasked(JSON.parse(sent), stored);
  expect([JSON.stringify(result.values), result.missing]).toEqual([values, missing]);
});
