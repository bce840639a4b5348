import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ComponentDescription, ComponentRejected, type Sandbox } from '../sandbox/sandbox.js';
import { componentOf, startTestSandbox } from '../sandbox/sandbox-for-tests.js';
import { pipedreamFiles, sourcesOf, withNeighbours } from './pipedream-package-for-tests.js';

/** Two lines per source: its name, and its description or why it has none. `SLUICE_WRITE_TABLES=1 npm test -- described` writes the table again. */
const table = join(process.cwd(), 'apps/runtime/src/real-components/described.txt');
const writesTable = Boolean(process.env.SLUICE_WRITE_TABLES);
const atATime = 4;
// Each source needs two processes: SLUICE_SEED chooses a third of them
const parts = 3;
const part = Number(process.env.SLUICE_SEED) % parts;

describe('the 254 source files of npm pipedream@0.2.2', () => {
  const files = pipedreamFiles();
  const all = sourcesOf(files);
  const sources = writesTable ? all : all.filter((_, index) => index % parts === part);
  const found = new Map<string, ComponentDescription | string>();
  let sandbox: Sandbox;

  beforeAll(async () => {
    sandbox = await startTestSandbox({ blanks: 4 });
    const rest = [...sources];
    const next = async (): Promise<void> => {
      for (let source = rest.shift(); source !== undefined; source = rest.shift()) found.set(source, await look(source));
    };
    await Promise.all(Array.from({ length: atATime }, next));
  }, 1_200_000);
  afterAll(() => sandbox.close());

  const look = async (source: string): Promise<ComponentDescription | string> => {
    try {
      return await sandbox.inspect(componentOf(await sandbox.bundle(withNeighbours(source, files))));
    } catch (error) {
      if (!(error instanceof ComponentRejected)) throw error;
      return error.message.replace(/ is not available\..*/s, ' is not available');
    }
  };
  const described = () => [...found].filter((entry): entry is [string, ComponentDescription] => typeof entry[1] !== 'string');

  it('have the descriptions of the table', () => {
    const entries = sources.map((source) => `${source}\n    ${line(found.get(source)!)}\n`);
    if (writesTable) writeFileSync(table, entries.join(''));
    const inTable = readFileSync(table, 'utf8').match(/^\S.*\n {4}.*\n/gm)!;
    expect(entries).toEqual(inTable.filter((entry) => sources.includes(entry.split('\n')[0]!)));
  });

  it('are described when they are bundled: at least 200', () => {
    const lines = readFileSync(table, 'utf8').split('\n');
    expect(lines.filter((text) => text.startsWith('    '))).toHaveLength(all.length);
    expect(all).toHaveLength(254);
    expect(lines.filter((text) => text.startsWith('    "')).length).toBeGreaterThanOrEqual(200);
  });

  it('have the name, the key and the version that stand in their files', () => {
    for (const [source, { name, key, version }] of described()) {
      const code = Object.values(withNeighbours(source, files).files).join('\n');
      for (const value of [name, key, version]) expect([source, value === null || code.includes(value)]).toEqual([source, true]);
    }
  });
});

function line(found: ComponentDescription | string): string {
  if (typeof found === 'string') return `not: ${found}`;
  const { name, version, dedupe, hooks, has_run, configurable_props } = found;
  const parts = [
    `"${name}" ${version}`,
    ...(has_run ? [] : ['no run']),
    ...(dedupe ? [`dedupe ${dedupe}`] : []),
    ...(hooks.length > 0 ? [`hooks ${hooks.join(' ')}`] : []),
    `props ${configurable_props.map(({ name, type }) => `${name}: ${type}`).join(', ')}`,
  ];
  return parts.join('; ');
}
