import { describe, expect, it } from '@jest/globals';
import { EXAMPLES } from './examples.js';
import { program } from './program.js';

describe('the help of each command', () => {
  const root = program();
  const commands = root
    .createHelp()
    .visibleCommands(root)
    .filter((command) => !['admin', 'help'].includes(command.name()));

  it.each(commands.map((command) => [command.name(), command] as const))(
    'has examples, which use options that exist: %s',
    (name, command) => {
      let help = '';
      command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
      const examples = EXAMPLES[name] ?? [];
      expect(examples.length).toBeGreaterThan(0);
      for (const example of examples) {
        expect(help).toContain(`  ${example}\n`);
        expect(example).toContain(`sluice ${name}`);
        const known = command.options.flatMap(({ long, short }) => [long, short]);
        for (const [, option] of example.matchAll(/ (--?[a-zA-Z][\w-]*)/g)) expect(known).toContain(option);
      }
    },
  );

  it('exists only for commands', () => {
    expect(Object.keys(EXAMPLES).sort()).toEqual(commands.map((command) => command.name()).sort());
  });
});

it.each(['publish', 'publish orders --date 1', 'publishh'])('reports wrong usage like all other errors: %s', async (line) => {
  let text = '';
  const root = program();
  for (const each of [root, ...root.commands]) each.configureOutput({ writeErr: (part) => (text += part) });
  await expect(root.parseAsync(line.split(' '), { from: 'user' })).rejects.toThrow();
  expect(text).toMatch(/^sluice: /);
});

/** The text that the program writes, and the error with which it ends. */
async function refused(words: string[]): Promise<{ text: string; error: unknown }> {
  let text = '';
  const root = program();
  for (const each of [root, ...root.commands])
    each.configureOutput({ writeErr: (part) => (text += part), writeOut: (part) => (text += part) });
  const error: unknown = await root.parseAsync(words, { from: 'user' }).catch((thrown: unknown) => thrown);
  return { text, error };
}

it.each(
  [
    ['deploy', 'a.mjs', '--name', ''],
    ['update', 'orders', '--name', ''],
    ['update', 'orders', '--code', ''],
    ['subscribe', 'orders', 'https://example.com/hooks', '--name', ''],
    ['login', '--profile', ''],
    ['profile', ''],
    ['export', ''],
    ['types', ''],
    ['init', ''],
    ['whoami', '--profile', ''],
    ['--profile', '', 'whoami'],
    ['publish', 'orders', '--data', ''],
  ].map((words) => [words]),
)('refuses an empty value, as that of a variable which is not set: %j', async (words) => {
  const { text, error } = await refused(words);
  expect(text).toContain("'' is invalid");
  expect(text).toContain('It is empty: is a variable not set?');
  expect(error).toMatchObject({ code: 'commander.invalidArgument' });
});

it('reports an unknown command also with --help', async () => {
  const { text, error } = await refused(['nope', '--help']);
  expect(text).toMatch(/^sluice: unknown command 'nope'/);
  expect(error).toMatchObject({ exitCode: 1 });
  expect(await refused(['--help'])).toMatchObject({ text: expect.stringMatching(/^Usage: sluice/), error: { exitCode: 0 } });
  expect(await refused(['ls', '--help'])).toMatchObject({ text: expect.stringMatching(/^Usage: sluice list/), error: { exitCode: 0 } });
});

it.each([
  ['before', ['--profile', 'none-of-this-name', '-o', 'json', 'whoami']],
  ['after', ['whoami', '--profile', 'none-of-this-name', '-o', 'json']],
])('takes the options of all commands %s the command', async (_, words) => {
  expect(await refused(words)).toMatchObject({ error: { message: expect.stringContaining('there is no profile none-of-this-name') } });
});

it('offers -o id only for resources, and refuses it before a command does anything', async () => {
  for (const words of [
    ['apply', '-f', '-', '-o', 'id'],
    ['-o', 'id', 'publish', 'orders', '--data', '1'],
  ])
    expect(await refused(words)).toMatchObject({ error: { code: 2, message: '-o id is for deploy, get, list, update, whoami' } });
});

it('a component command reports where it runs', async () => {
  await expect(program().parseAsync(['component', 'check', 'a.mjs'], { from: 'user' })).rejects.toMatchObject({
    ...{ code: 2, message: expect.stringContaining('need a clone of the repository') },
  });
});

it.each(['admin account list', '-o json dead-letters', 'dead-letters --since 7d', 'registry --help'])(
  'a command of operators reports where it runs, and where its options come: %s',
  async (line) => {
    await expect(program().parseAsync(line.split(' '), { from: 'user' })).rejects.toMatchObject({
      code: 2,
      message: expect.stringMatching(/^operator commands run where Sluice is installed: .*; options come after the command$/),
    });
  },
);
