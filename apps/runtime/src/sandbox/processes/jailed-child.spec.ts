import { expect, it } from '@jest/globals';
import type { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { JailedChild } from './jailed-child.js';
import { pieceMs } from './runner-channel.js';

const MOST_PIECES = 100;

/** Writes this many single bytes to the standard error of a process, and returns its failures and what they cost. */
function write(bytes: number) {
  const stderr = new EventEmitter();
  const failures: string[] = [];
  let ms = 0;
  const fail = ({ message }: { message: string }): void => void failures.push(message);
  new JailedChild(
    Object.assign(new EventEmitter(), { stderr }) as unknown as ChildProcess,
    MOST_PIECES,
    (cost) => (ms += cost),
    fail,
    () => {},
  );
  for (let n = 0; n < bytes; n++) stderr.emit('data', Buffer.from('x'));
  return { failures, ms };
}

it('a process that writes to its standard error in too many pieces fails', () => {
  expect(write(MOST_PIECES).failures).toEqual([]);
  expect(write(MOST_PIECES + 1).failures).toEqual(['The code wrote too much to its standard error']);
});

it('each piece of the standard error costs time', () => {
  expect(write(MOST_PIECES).ms).toBeCloseTo(MOST_PIECES * pieceMs);
});
