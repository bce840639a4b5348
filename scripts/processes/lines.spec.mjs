import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import { forEachLine } from './lines.mjs';

/** @param {(string | Buffer)[]} chunks */
async function linesOf(...chunks) {
  const stream = new PassThrough();
  /** @type {string[]} */
  const lines = [];
  forEachLine(stream, (line) => lines.push(line));
  for (const chunk of chunks) stream.write(chunk);
  stream.end();
  await once(stream, 'end');
  return lines;
}

test('only a line feed ends a line', async () => {
  expect(await linesOf('{"a":"x\u2028y\u2029z\rw"}\n\nlast')).toEqual(['{"a":"x\u2028y\u2029z\rw"}', '', 'last']);
});

test('a line and a character may arrive in parts', async () => {
  const bytes = Buffer.from('{"ä"}\n');
  expect(await linesOf(bytes.subarray(0, 3), bytes.subarray(3), 'b\nc', 'd\n')).toEqual(['{"ä"}', 'b', 'cd']);
});
