import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { builtinModules } from 'node:module';
import { curatedModules } from '../curated-modules.js';
import type { ProcessSandbox } from '../process-sandbox.js';
import { componentOf, jobOf, startTestSandbox } from '../sandbox-for-tests.js';
import { PackagesMissing } from '../sandbox.js';
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
  ])('a closed module cannot be loaded by %s', async (_, load) => {
    const names = [...closedBuiltIns, 'internal/test/binding', 'internal/modules/helpers'];
    const spellings = [...names, ...names.map((name) => (name.startsWith('node:') ? name : `node:${name}`))];
    const reached = `const reached = []; for (const name of ${JSON.stringify(spellings)}) try { ${load}; reached.push(name) } catch {} return reached`;
    expect(await emitted(reached)).toEqual([]);
  });

  it('an open module is returned by process.getBuiltinModule', async () => {
    expect(await emitted('return process.getBuiltinModule("node:path").join("a", "b")')).toBe('a/b');
  });

  it('the mask of new files can be read, but not changed', async () => {
    expect(await emitted('return process.umask()')).toBe(0o022);
    expect(await emitted('return process.umask(0)')).toMatchObject({ code: 'NOT_AVAILABLE' });
  });

  it.each([
    ['realpathSync', 'require("fs").realpathSync(path)'],
    ['an imported realpathSync', '(await import("fs")).realpathSync(path)'],
    ['realpathSync.native', 'require("fs").realpathSync.native(path)'],
    ['realpath', 'await require("util").promisify(require("fs").realpath)(path)'],
    ['fs/promises', 'await require("fs/promises").realpath(path)'],
  ])('do not show by %s whether a file exists that the component may not read', async (_, resolve) => {
    const codes = `const codes = []; for (const path of ["/bin/node", "/bin/none", "/bin/node/none"]) try { ${resolve}; codes.push("resolved") } catch (e) { codes.push(e.code) } return codes`;
    expect(await emitted(codes)).toEqual(Array(3).fill('ERR_ACCESS_DENIED'));
  });

  it('resolve a path that the component may read', async () => {
    expect(await emitted('return require("fs").realpathSync(process.argv[1])')).toMatch(/\/runner\.cjs$/);
  });

  it('are never installed from npm, with and without the prefix node:', async () => {
    const names = [...builtinModules, 'child_process/more'];
    const spellings = new Set(names.flatMap((name) => [name, name.startsWith('node:') ? name : `node:${name}`]));
    const code = [...spellings].map((name) => `require(${JSON.stringify(name)});`).join('');
    const inspected = (all: string) => sandbox.inspect(componentOf(`module.exports = { name: "n", run() { ${all} } }`), { installs: true });
    expect(await inspected(code)).toMatchObject({ name: 'n' });
    const packages = ['require("sqlite");', 'require("readline@1.3.0");', 'require("process/browser");'];
    await expect(inspected(code + packages.join(''))).rejects.toMatchObject({
      constructor: PackagesMissing,
      imports: packages.map((each) => ({ specifier: JSON.parse(each.slice(8, -2)) })),
    });
  });

  it('closed modules are named where they are refused, with the list', async () => {
    const names = closedBuiltIns.flatMap((name) => (name.startsWith('node:') ? [name] : [name, `node:${name}`]));
    const messages = `const messages = {}; for (const name of ${JSON.stringify(names)}) try { require(name) } catch (e) { messages[name] = e.message.split(': assert')[0] } return messages`;
    expect(await emitted(messages)).toEqual(
      Object.fromEntries(names.map((name) => [name, `The module "${name}" is not available. Available modules of Node`])),
    );
  });

  it.each([
    ['child_process', 'require("child_process"); module.exports = { name: "n" }'],
    ['readline/promises', 'import "readline/promises"; export default { name: "n" }'],
    ['node:vm', 'import "node:vm"; export default { name: "n" }'],
  ])('refuse a component that loads %s', async (name, code) => {
    await expect(sandbox.inspect(componentOf(code), { installs: true })).rejects.toThrow(
      `The module "${name}" is not available. Available modules of Node: `,
    );
  });

  it('open modules can be loaded, and are enough for every package', async () => {
    const load = `const failed = []; for (const name of ${JSON.stringify([...builtIns, ...curatedModules])}) try { require(name) } catch (e) { failed.push(name + ': ' + e.message) } return failed`;
    expect(await emitted(load)).toEqual([]);
  });
});
