import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Command } from 'commander';
import { runCommand } from './command-line.js';

const argv = process.argv;
let exit: jest.SpiedFunction<typeof process.exit>;
beforeEach(() => {
  const write = (_: unknown, done?: unknown): boolean => {
    if (typeof done === 'function') done();
    return true;
  };
  jest.spyOn(process.stderr, 'write').mockImplementation(write);
  jest.spyOn(process.stdout, 'write').mockImplementation(write);
  exit = jest.spyOn(process, 'exit').mockReturnValue(undefined as never);
  jest.spyOn(console, 'error').mockReturnValue();
});
afterEach(() => {
  process.argv = argv;
  process.exitCode = undefined;
  jest.restoreAllMocks();
});

it.each([
  [['thing'], 2],
  [['thing', 'make'], 2],
  [['thing', 'make', '--wrong'], 2],
  [['thing', 'make', '--help'], 0],
  [['thing', 'make', 'broken'], 1],
  [['thing', 'make', 'good'], undefined],
])('the arguments %j end the process with the exit code %s', async (args, code) => {
  const program = new Command('sluice');
  const close = jest.fn(async () => {});
  program
    .command('thing')
    .command('make <name>')
    .action((name: string) => {
      if (name === 'broken') throw new Error('broken');
    });
  process.argv = ['node', 'sluice', ...args];
  await runCommand(() => ({ program, close }));
  expect(process.exitCode).toBe(code);
  expect(close).toHaveBeenCalledTimes(1);
  expect(exit).toHaveBeenCalledTimes(1);
});

it('prints arguments that are wrong without their control characters', async () => {
  process.argv = ['node', 'sluice', 'thing', '--\u001b[2J'];
  const program = new Command('sluice');
  program.command('thing').action(() => {});
  await runCommand(() => ({ program, close: async () => {} }));
  const printed = jest.mocked(process.stderr.write).mock.calls.map(([text]) => String(text));
  expect(printed.join('')).toMatch(/^error: unknown option '--/);
  expect(printed.join('')).not.toContain('\u001b');
});
