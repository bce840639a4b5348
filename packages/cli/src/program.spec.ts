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

it('component commands say where they run', async () => {
  await expect(program().parseAsync(['component', 'check', 'a.mjs'], { from: 'user' })).rejects.toMatchObject({
    ...{ code: 2, message: expect.stringContaining('need a clone of the repository') },
  });
});

it.each(['admin account list', 'dead-letters --since 7d', 'registry --help'])(
  'the command of operators says where it runs: %s',
  async (line) => {
    await expect(program().parseAsync(line.split(' '), { from: 'user' })).rejects.toMatchObject({
      code: 2,
      message: expect.stringContaining('operator commands run where Sluice is installed'),
    });
  },
);
