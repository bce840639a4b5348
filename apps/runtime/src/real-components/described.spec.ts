import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ComponentDescription, ComponentRejected, type Sandbox } from '../sandbox/sandbox.js';
import { componentOf, startTestSandbox } from '../sandbox/sandbox-for-tests.js';
import { pipedreamFiles, sourcesOf, withNeighbours } from './pipedream-package-for-tests.js';

/** A line per source: its description, or why it has none. `SLUICE_WRITE_TABLES=1 npm test -- described` writes the table again. */
const table = join(process.cwd(), 'apps/runtime/src/real-components/described.txt');
const atATime = 4;

describe('the 254 source files of npm pipedream@0.2.2', () => {
  const files = pipedreamFiles();
  const sources = sourcesOf(files);
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
    const lines = sources.map((source) => `${source}\n    ${line(found.get(source)!)}\n`).join('');
    if (process.env.SLUICE_WRITE_TABLES) writeFileSync(table, lines);
    expect(lines).toBe(readFileSync(table, 'utf8'));
  });

  it('are described when they are bundled: at least 200', () => {
    expect(sources).toHaveLength(254);
    expect(described().length).toBeGreaterThanOrEqual(200);
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
