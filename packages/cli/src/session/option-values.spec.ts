import { expect, it } from '@jest/globals';
import { jsonOption } from './option-values.js';

it('reads the JSON of an option from text, a file or standard input', async () => {
  expect(await jsonOption('--data', '{"a":1}', async () => '')).toEqual({ a: 1 });
  expect(await jsonOption('--data', '-', async () => '"text"')).toBe('text');
  await expect(jsonOption('--data', 'text', async () => '')).rejects.toThrow('--data must be JSON');
  await expect(jsonOption('--data', '@none.json', async () => '')).rejects.toThrow('none.json cannot be read');
});
