import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { builtinModules } from 'node:module';
import { curatedModules } from '../curated-modules.js';
import type { ProcessSandbox } from '../process-sandbox.js';
import { jobOf, startTestSandbox } from '../sandbox-for-tests.js';
import { builtIns, closedBuiltIns } from './built-ins.js';

describe("Node's own modules", () => {
  let sandbox: ProcessSandbox;
  beforeAll(async () => (sandbox = await startTestSandbox()), 30_000);
  afterAll(() => sandbox.close());

  const emitted = async (run: string): Promise<unknown> => {
    const { error, emits } = await sandbox.run(
      jobOf(`module.exports = { name: "n", async run() { this.$emit(await (async () => { ${run} })()) } }`),
    );
    return error ?? JSON.parse(emits[0]!.event);
  };

  it('are each either open to components or closed', () => {
    expect([...builtIns, ...closedBuiltIns].sort()).toEqual([...builtinModules].sort());
  });

  it.each([
    ['require', 'require(name)'],
    ['import', 'await import(name)'],
    ['the runner’s own module', 'process.mainModule.require(name)'],
    ['the class of modules', 'process.mainModule.constructor._load(name)'],
    ['process.getBuiltinModule', 'if (!process.getBuiltinModule(name)) throw 1'],
    ['the require of a package', 'require("lodash").constructor.constructor("return require")()(name)'],
  ])('that are closed cannot be loaded by %s', async (_, load) => {
    const names = [...closedBuiltIns, 'internal/test/binding', 'internal/modules/helpers'];
    const spellings = [...names, ...names.map((name) => (name.startsWith('node:') ? name : `node:${name}`))];
    const reached = `const reached = []; for (const name of ${JSON.stringify(spellings)}) try { ${load}; reached.push(name) } catch {} return reached`;
    expect(await emitted(reached)).toEqual([]);
  });

  it('that are open can be loaded, and are enough for every package', async () => {
    const load = `const failed = []; for (const name of ${JSON.stringify([...builtIns, ...curatedModules])}) try { require(name) } catch (e) { failed.push(name + ': ' + e.message) } return failed`;
    expect(await emitted(load)).toEqual([]);
  });
});
