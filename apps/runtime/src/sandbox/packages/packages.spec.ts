import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { unpackPackages } from '../../components/code-cache.js';
import { inspectComponent } from '../../components/inspect-component.js';
import type { ProcessSandbox } from '../process-sandbox.js';
import type { PackageImport } from '../sandbox.js';
import { jobOf, startTestSandbox } from '../sandbox-for-tests.js';
import type { PackageSettings } from './package-installer.js';
import { TestRegistry } from './registry-for-tests.js';

const mark = join(tmpdir(), `sluice-packages-${process.pid}`);
const esm = (code: string) => ({ files: { 'index.mjs': code }, manifest: { exports: './index.mjs' } });

describe('packages that components import', () => {
  const registry = new TestRegistry();
  let folder: string;
  let stores = 0;
  const sandboxes: ProcessSandbox[] = [];
  let sandbox: ProcessSandbox;

  const start = async (settings: Partial<PackageSettings> = {}): Promise<ProcessSandbox> => {
    const store = settings.store ?? newStore();
    const packages: PackageSettings = { policy: 'any', list: [], env: npmEnvironment(registry.url), ...settings, store };
    const started = await startTestSandbox({ packages, blanks: 0 });
    sandboxes.push(started);
    return started;
  };
  const newStore = () => join(folder, `store-${++stores}`);
  const npmEnvironment = (url: string) => ({ NPM_CONFIG_REGISTRY: url, NPM_CONFIG_USERCONFIG: join(folder, 'npmrc'), HOME: folder });

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-packages-'));
    // The jail's user is another one
    await chmod(folder, 0o755);
    await registry.start();
    await writeFile(join(folder, 'npmrc'), `//${registry.url.slice('http://'.length)}:_authToken=token-of-the-operator\n`);
    registry.publish('greeting', '1.0.0', esm('export default "one"; export const version = "1.0.0";'));
    registry.publish('greeting', '1.1.0', esm('export default "two"; export const version = "1.1.0";'));
    registry.publish('greeting', '2.0.0', {
      files: { 'index.mjs': 'import { part } from "parts"; export default `three ${part}`; export const version = "2.0.0";' },
      manifest: { exports: './index.mjs', dependencies: { parts: '^0.1.0' } },
    });
    registry.publish('parts', '0.1.0', {
      files: { 'index.js': 'exports.part = "part"; exports.sub = require("./sub");', 'sub.js': 'module.exports = "sub"' },
    });
    registry.publish('lodash', '3.0.0', { files: { 'index.js': 'exports.VERSION = "3.0.0"' } });
    registry.publish(
      '@scope/tools',
      '1.0.0',
      esm(
        'import { exec } from "node:child_process"; import fs from "fs"; export const run = () => exec("id"); export const has = typeof fs.readFileSync;',
      ),
    );
    registry.publish(
      'optional',
      '1.0.0',
      esm('import other from "not-installed"; export const use = () => other.method(); export const fine = 1;'),
    );
    registry.publish('optional-long', '1.0.0', {
      files: { 'index.js': `exports.load = () => require("not-installed/${'folder/'.repeat(30)}file.js"); exports.fine = 1;` },
    });
    sandbox = await start();
  }, 120_000);
  afterAll(async () => {
    await Promise.all(sandboxes.map((each) => each.close()));
    await registry.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const result = async (imports: string, expression: string, within = sandbox) => {
    const code = `${imports}\nexport default { name: "n", async run() { this.$emit(${expression}) } }`;
    const inspected = await inspectComponent(within, code);
    const { emits, error } = await within.run({ ...jobOf(code), component: inspected.component });
    return { value: error ? error.message : (JSON.parse(emits[0]!.event) as unknown), description: inspected.description };
  };
  const rejection = async (imports: string, within = sandbox): Promise<string> =>
    inspectComponent(within, `${imports}\nexport default { name: "n" }`).then(
      () => 'accepted',
      (error: Error) => `${error.name}: ${error.message}`,
    );

  it.each<[string, string, string, unknown, Record<string, string>]>([
    ['the newest version', 'import greeting from "greeting";', 'greeting', 'three part', { greeting: '2.0.0' }],
    [
      'an exact version',
      'import greeting, { version } from "greeting@1.0.0";',
      '[greeting, version]',
      ['one', '1.0.0'],
      { 'greeting@1.0.0': '1.0.0' },
    ],
    ['a range', 'import { version } from "greeting@^1";', 'version', '1.1.0', { 'greeting@^1': '1.1.0' }],
    [
      'several versions of one package',
      'import a from "greeting@1.0.0"; import b from "greeting@1.1.0"; import c from "greeting";',
      '[a, b, c]',
      ['one', 'two', 'three part'],
      { 'greeting@1.0.0': '1.0.0', 'greeting@1.1.0': '1.1.0', greeting: '2.0.0' },
    ],
    ['a file of a package', 'import sub from "parts/sub.js";', 'sub', 'sub', { 'parts/sub.js': '0.1.0' }],
    [
      'names of a CommonJS package',
      'import { part, sub } from "parts"; import * as all from "parts";',
      '[part, sub, all.default.part]',
      ['part', 'sub', 'part'],
      { parts: '0.1.0' },
    ],
    ['a dynamic import', '', '(await import("greeting@1.0.0")).default', 'one', { 'greeting@1.0.0': '1.0.0' }],
    [
      'another version of a package that is part of Sluice',
      'import a from "lodash@3"; import b from "lodash";',
      '[a.VERSION, b.VERSION > "4"]',
      ['3.0.0', true],
      { 'lodash@3': '3.0.0' },
    ],
    ['modules that the sandbox does not have', 'import { has } from "@scope/tools";', 'has', 'function', { '@scope/tools': '1.0.0' }],
    ['a package that lacks an optional one', 'import { fine } from "optional";', 'fine', 1, { optional: '1.0.0' }],
    ['a package that lacks one with a long name', 'import { fine } from "optional-long";', 'fine', 1, { 'optional-long': '1.0.0' }],
  ])('are installed: %s', async (_, imports, expression, value, packages) => {
    const found = await result(imports, expression);
    expect(found.value).toEqual(value);
    expect(found.description.packages).toEqual(packages);
  });

  it('are not installed if TypeScript imports only types of them', async () => {
    const code = `import { DateTime } from "not-in-the-registry"; import greeting, { Greeting } from "greeting@1.0.0";
      export default { name: "n", run(now: DateTime, last: Greeting) { this.$emit(greeting) } }`;
    const { component, description } = await inspectComponent(sandbox, code);
    expect(description.packages).toEqual({ 'greeting@1.0.0': '1.0.0' });
    expect(await sandbox.run({ ...jobOf(code), component })).toMatchObject({ error: null, emits: [{ event: '"one"' }] });
  });

  it('are installed for CommonJS components, too', async () => {
    const code =
      'const { part } = require("parts"); const get = require("lodash.get"); module.exports = { name: "n", run() { this.$emit([part, get({ a: require("parts@0.1.0").sub }, "a")]) } }';
    const { component, description } = await inspectComponent(sandbox, code);
    const { emits, error } = await sandbox.run({ ...jobOf(code), component });
    expect(error).toBeNull();
    expect(emits).toEqual([{ event: '["part","sub"]' }]);
    expect(description.packages).toEqual({ parts: '0.1.0', 'parts@0.1.0': '0.1.0' });
  });

  it('are installed for a bundle of an ES module and its CommonJS neighbours', async () => {
    const files = {
      'a.mjs': 'import b from "./b.cjs"; export default { name: "n", run() { this.$emit(b) } }',
      'b.cjs': 'module.exports = require("parts@0.1.0").part',
    };
    const { component } = await inspectComponent(sandbox, await sandbox.bundle({ entry: 'a.mjs', files }));
    const { emits, error } = await sandbox.run({ ...jobOf(''), component });
    expect(error).toBeNull();
    expect(emits).toEqual([{ event: '"part"' }]);
  });

  it.each([
    ['import { part } from "parts"; const same = require("parts");', '[part, same.part]'],
    ['import q = require("parts"); import { part } from "parts";', '[q.part, require("parts").sub && part]'],
    [
      'var __require = ((x) => typeof require !== "undefined" ? require : x)(() => { throw new Error("no require"); });',
      '[__require("parts").part, __require("lodash.get")({ a: "part" }, "a")]',
    ],
    ['import { part } from "parts"; const require = () => ({ part });', '[part, require("parts").part]'],
  ])('can be required by an ES module: %s', async (imports, expression) => {
    expect((await result(imports, expression)).value).toEqual(['part', 'part']);
  });

  it.each<[string, string, string, string]>([
    ['native', 'required', 'let it = "fallback"; try { it = require("absent-native") } catch {}', 'contains native code (x.node)'],
    ['scripted', 'required', 'let it = "fallback"; try { it = require("absent-scripted") } catch {}', 'runs a script when it is installed'],
    ['not in the registry', 'required', 'let it = "fallback"; try { it = require("absent-all") } catch {}', 'has no package "absent-all"'],
    ['not in the registry', 'imported', 'const it = await import("absent-all").catch(() => "fallback");', 'has no package "absent-all"'],
    ['dependent on native ones', 'required', 'let it = "fallback"; try { it = require("absent-inside") } catch {}', 'contains native code'],
  ])('may be absent if the code can do without them: %s, %s', async (_, how, imports, reason) => {
    const manifest = { scripts: { postinstall: `touch ${mark}` } };
    registry.publish('absent-native', '1.0.0', { files: { 'index.js': '', 'x.node': 'ELF' } });
    registry.publish('absent-scripted', '1.0.0', { manifest, files: { 'index.js': '' } });
    registry.publish('absent-inside', '1.0.0', { manifest: { dependencies: { 'absent-native': '*' } }, files: { 'index.js': '' } });
    const { value, description } = await result(`import { part } from "parts";\n${imports}`, '[it, part]');
    expect(value).toEqual(['fallback', 'part']);
    expect(description.packages).toEqual({ parts: '0.1.0' });
    const message = expect.stringMatching(new RegExp(`^Importing "absent-\\w+" fails: .*${reason.replace(/[()]/g, '.')}`));
    expect(description.warnings).toEqual([{ message, line: 2, column: null }]);
  });

  it('are refused with the reason if the code cannot do without them', async () => {
    registry.publish('needed-native', '1.0.0', { files: { 'index.js': '', 'x.node': 'ELF' } });
    const reason = 'The package needed-native@1.0.0 contains native code (x.node), which cannot run in the sandbox';
    const commonJs = 'const { part } = require("parts");\nconst native = require("needed-native");\nmodule.exports = { name: "n" }';
    await expect(inspectComponent(sandbox, commonJs)).rejects.toMatchObject({ message: expect.stringContaining(reason), line: 2 });
    const both = 'import a from "needed-native"; try { require("needed-native") } catch {}';
    expect(await rejection(both)).toBe(`ComponentRejected: ${reason}`);
  });

  it('name the line in each component when their shared installation fails', async () => {
    const rejected = await Promise.all(['', '\n\n'].map((first) => rejection(`${first}import a from "parts/missing.js";`)));
    expect(rejected.map((message) => /\(line \d\)/.exec(message)?.[0])).toEqual(['(line 1)', '(line 3)']);
  });

  it('may ask for their own files while they are loaded', async () => {
    registry.publish('resolving', '1.0.0', {
      files: {
        'index.js':
          'exports.worker = require.resolve("./worker.js"); try { require.resolve("not-there") } catch ({ code }) { exports.code = code }',
      },
    });
    expect((await result('import r from "resolving";', '[r.worker, r.code]')).value).toEqual(['./worker.js', 'MODULE_NOT_FOUND']);
  });

  it('are imported by a literal name, as the error of another import says', async () => {
    const { value } = await result('const name = "parts";', 'await import(name)');
    expect(value).toContain('The module "parts" is not available');
    expect(value).toContain('Others are installed when the component is created, if the code imports them by a literal name');
  });

  it('throw a sentence where they use what the sandbox does not have', async () => {
    expect((await result('import { run } from "@scope/tools";', 'run()')).value).toBe('child_process.exec is not available to components');
    expect((await result('import { use } from "optional";', 'use()')).value).toBe('The optional package "not-installed" is not installed');
  });

  it('keep the lines of the author’s errors', async () => {
    const code = 'import greeting from "greeting@1.0.0";\n\nexport default { name: "n", run() {\n  throw new Error(greeting);\n} }';
    const { component } = await inspectComponent(sandbox, code);
    const { error } = await sandbox.run({ ...jobOf(code), component });
    expect(error?.stack).toContain('component.js:4:9');
  });

  it('are requested with the operator’s credentials, which the component cannot see', async () => {
    await result('import greeting from "greeting@1.0.0";', 'greeting');
    expect(registry.requests.at(-1)?.authorization).toBe('Bearer token-of-the-operator');
    const seen = await result('import fs from "fs"; import greeting from "greeting@1.1.0";', '[process.env, fs.readdirSync("/runner")]');
    expect(JSON.stringify(seen.value)).not.toContain('token-of-the-operator');
  });

  it('are installed once when several components ask for them at the same time', async () => {
    registry.publish('popular', '1.0.0', esm('export default 1'));
    const before = registry.requests.length;
    await Promise.all(['a', 'b', 'c'].map((name) => result(`import popular from "popular"; // ${name}`, 'popular')));
    expect(registry.requests.slice(before).filter(({ path }) => path.endsWith('.tgz'))).toHaveLength(1);
  });

  it('are installed for an account that waits longer than the one whose installation it has joined', async () => {
    const imports: PackageImport[] = [{ specifier: 'greeting@1.0.0', kind: 'import', isStatic: true, line: 1 }];
    registry.isSilent = true;
    const first = sandbox.bundlePackages(imports, { accountId: 'u_first', until: Date.now() + 2000 });
    const second = sandbox.bundlePackages(imports, { accountId: 'u_second', until: Date.now() + 60_000 });
    second.catch(() => {});
    await expect(first).rejects.toThrow();
    registry.isSilent = false;
    expect((await second).versions).toEqual({ 'greeting@1.0.0': '1.0.0' });
  });

  it('are packed as they are unpacked', async () => {
    const imports: PackageImport[] = [{ specifier: 'greeting@1.0.0', kind: 'import', isStatic: true, line: 1 }];
    const { code, packed } = await sandbox.bundlePackages(imports);
    expect(code).toContain('one');
    expect(await unpackPackages(packed)).toBe(code);
  });

  it('are refused to an account that has downloaded enough in a day, and not to others', async () => {
    const own = await start({ downloadedBytesPerDay: 1 });
    const install = (specifier: string, accountId: string) =>
      own.bundlePackages([{ specifier, kind: 'import', isStatic: true, line: 1 }], { accountId });
    await install('greeting@1.0.0', 'u_busy');
    await expect(install('greeting@1.1.0', 'u_busy')).rejects.toMatchObject({ name: 'TooMuchDownloaded' });
    expect((await install('greeting@1.1.0', 'u_other')).versions).toEqual({ 'greeting@1.1.0': '1.1.0' });
  });

  it('are deleted from the store after an installation that makes it too large', async () => {
    const store = newStore();
    const own = await start({ store, limits: { storeBytes: 1 } });
    expect((await result('import greeting from "greeting@1.0.0";', 'greeting', own)).value).toBe('one');
    expect(existsSync(join(store, 'downloads'))).toBe(false);
    expect((await result('import greeting from "greeting@1.1.0";', 'greeting', own)).value).toBe('two');
  });

  it('leave nothing behind but what was downloaded', async () => {
    const store = newStore();
    const own = await start({ store });
    await result('import greeting from "greeting";', 'greeting', own);
    expect(await rejection('import a from "missing-package";', own)).toContain('ComponentRejected');
    expect(await readdir(store)).toEqual(['downloads']);
  });

  it('cannot be installed for now if their folder cannot be written to', async () => {
    const store = newStore();
    const own = await start({ store });
    const rejected = rejection('import greeting from "greeting";', own);
    const work = async () => (await readdir(store).catch(() => [])).find((name) => name.startsWith('install-'));
    while (!(await work())) await sleep(5);
    await mkdir(join(store, (await work())!, '.bundling'));
    expect(await rejected).toMatch(/^SandboxUnavailable: Packages cannot be installed: EEXIST: /);
  });

  it('packages that were installed before need no registry', async () => {
    const offline = new TestRegistry();
    offline.publish('kept', '1.0.0', esm('export default "kept"'));
    await offline.start();
    const own = await start({ env: npmEnvironment(offline.url) });
    expect((await result('import kept from "kept";', 'kept', own)).value).toBe('kept');
    await offline.stop();
    expect((await result('import kept from "kept"; // again', 'kept', own)).value).toBe('kept');
    expect(await rejection('import other from "other";', own)).toMatch(
      /The registry of npm packages cannot be reached \(ECONNREFUSED\), and the packages other were not installed before\. Packages that need no registry: @.*, axios, /,
    );
    const shipped = await result('import { VERSION } from "lodash@3";', 'VERSION > "4"', own);
    expect(shipped.value).toBe(true);
    expect(shipped.description.warnings).toEqual([
      { message: expect.stringContaining('which is part of Sluice, because the registry could not be reached'), line: 1, column: null },
    ]);
  });

  it('can be downloaded beforehand', async () => {
    const store = newStore();
    expect(await (await start({ store })).preload(['greeting@^1', '@scope/tools'])).toEqual({
      'greeting@^1': '1.1.0',
      '@scope/tools': '1.0.0',
    });
    const offline = await start({ store });
    await registry.stop();
    try {
      expect(
        (await result('import greeting from "greeting@^1"; import { has } from "@scope/tools";', '[greeting, has]', offline)).value,
      ).toEqual(['two', 'function']);
    } finally {
      await registry.start();
    }
  });

  it('are named where they lack an export', async () => {
    expect(await rejection('\nimport { nothing } from "parts";')).toBe(
      'ComponentRejected: The module "parts" has no export "nothing". Another version can be imported as "parts@VERSION" (line 2)',
    );
  });

  it('a package that does not exist is refused without a list of others where the operator allows all', async () => {
    expect(await rejection('import a from "missing-package";')).toMatch(/has no package "missing-package"$/);
  });

  describe('are refused with a sentence', () => {
    it.each<[string, string, Record<string, object>, string]>([
      ['a package that does not exist', 'import a from "missing-package";', {}, 'The registry has no package "missing-package"'],
      ['a version that does not exist', 'import a from "greeting@9";', {}, 'The registry has no such version: greeting@9'],
      [
        'a file that does not exist',
        '\nimport a from "parts/missing.js";',
        {},
        '"parts/missing.js" does not exist in its package (line 2)',
      ],
      [
        'an install script',
        'import a from "scripted";',
        { scripted: { manifest: { scripts: { postinstall: `touch ${mark}` } }, files: { 'index.js': '' } } },
        'scripted@1.0.0 runs a script when it is installed, which Sluice does not execute',
      ],
      [
        'native code',
        'import a from "native";',
        { native: { files: { 'index.js': '', 'build/x.node': 'ELF' } } },
        'native@1.0.0 contains native code (build/x.node)',
      ],
      [
        'the sources of native code',
        'import a from "builds-native";',
        { 'builds-native': { files: { 'index.js': '', 'binding.gyp': '{}' } } },
        'builds-native@1.0.0 contains native code (binding.gyp)',
      ],
      [
        'a dependency on a repository',
        'import a from "with-git";',
        { 'with-git': { manifest: { dependencies: { x: 'git+https://example.com/x.git' } }, files: { 'index.js': '' } } },
        'not in the registry',
      ],
      [
        'a dependency on an address',
        'import a from "with-url";',
        { 'with-url': { manifest: { dependencies: { x: 'http://169.254.169.254/x.tgz' } }, files: { 'index.js': '' } } },
        'not in the registry',
      ],
      [
        'a dependency on a file',
        'import a from "with-file";',
        { 'with-file': { manifest: { dependencies: { x: 'file:/etc' } }, files: { 'index.js': '' } } },
        'not in the registry',
      ],
      [
        'an archive elsewhere',
        'import a from "elsewhere";',
        { elsewhere: { tarball: 'http://127.0.0.2:9/elsewhere.tgz', files: { 'index.js': '' } } },
        'not in the registry',
      ],
      [
        'an archive with another checksum',
        'import a from "altered";',
        { altered: { integrity: 'sha512-AAAA', files: { 'index.js': '' } } },
        'its checksum differs',
      ],
      [
        'code that does not parse',
        'import a from "broken";',
        { broken: { files: { 'index.js': 'export default {{' } } },
        'The packages cannot be bundled: ',
      ],
      [
        'a specifier of something else',
        'import a from "greeting@file:/etc";',
        {},
        'is neither a package nor one of Node’s own modules (line 1)',
      ],
      ...['__proto__', 'constructor', 'toString', 'valueOf', 'hasOwnProperty', 'constructor@1', 'constructor/file.js'].map(
        (name): [string, string, Record<string, object>, string] => [
          `the name ${name}`,
          `import a from "${name}";`,
          {},
          `The module "${name}" has a name that npm cannot install (line 1)`,
        ],
      ),
      [
        'a dependency whose name npm cannot install',
        'import a from "with-proto";',
        { 'with-proto': { manifest: { dependencies: JSON.parse('{"__proto__":"1"}') as object }, files: { 'index.js': '' } } },
        'npm cannot install with-proto: ',
      ],
      ['a name that no package can have', 'import a from "UPPER CASE";', {}, 'is neither a package nor one of Node’s own modules (line 1)'],
    ])('%s', async (_, imports, published, sentence) => {
      for (const [name, version] of Object.entries(published)) registry.publish(name, '1.0.0', version);
      const rejected = await rejection(imports);
      expect(rejected).toContain('ComponentRejected: ');
      expect(rejected).toContain(sentence);
      expect(existsSync(mark)).toBe(false);
    });

    it.each<[string, object, string]>([
      ['more bytes', { bytes: 1 << 20 }, 'The packages take more than 1 MB'],
      ['more files', { files: 50 }, 'The packages have more than 50 files'],
      ['more packages', { packages: 1 }, 'The packages need 2 packages in total; the limit is 1'],
      ['more code', { bundleBytes: 1 << 20 }, 'The packages have more than 1 MB of code'],
      ['more time', { wallMs: 1 }, 'could not be installed within'],
    ])('%s than allowed', async (_, limits, sentence) => {
      registry.publish('bomb', '1.0.0', {
        manifest: { dependencies: { parts: '*' } },
        files: {
          'index.js': `module.exports = ${JSON.stringify('ab'.repeat(2 << 20))}`,
          ...Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`f${n}`, 'x'])),
        },
      });
      expect(await rejection('import a from "bomb";', await start({ limits }))).toContain(sentence);
    });
  });

  it('cannot place files or links outside of their folder', async () => {
    registry.publish('climbing', '1.0.0', {
      files: {
        'index.js': 'module.exports = "fine"',
        link: { link: '/etc/passwd' },
        '../../../escaped.js': 'x',
        [`${mark}-absolute`]: 'x',
      },
    });
    expect((await result('import climbing from "climbing";', 'climbing')).value).toBe('fine');
    expect(await rejection('import text from "climbing/link";')).toContain('does not exist in its package');
    expect(existsSync(`${mark}-absolute`)).toBe(false);
  });

  it('packages with an install script are installed without running it where the operator lists them', async () => {
    registry.publish('scripted', '1.0.0', {
      manifest: { scripts: { postinstall: `touch ${mark}` } },
      files: { 'index.js': 'module.exports = "unscripted"' },
    });
    const own = await start({ list: ['scripted'] });
    expect((await result('import a from "scripted";', 'a', own)).value).toBe('unscripted');
    expect(existsSync(mark)).toBe(false);
  });

  it('are limited to those that the operator lists', async () => {
    const own = await start({ policy: 'listed', list: ['parts', '@scope/*'] });
    expect(
      (await result('import { part } from "parts"; import { has } from "@scope/tools"; import "lodash";', '[part, has]', own)).value,
    ).toEqual(['part', 'function']);
    const refused = await rejection('import a from "greeting";', own);
    expect(refused).toContain('The module "greeting" is not available. Available packages: @octokit/webhooks-definitions');
    expect(refused).toContain('Packages that this installation allows: parts, @scope/* (line 1)');
  });

  it('are only those of Sluice where the operator allows no others', async () => {
    const own = await start({ policy: 'none' });
    const before = registry.requests.length;
    expect(await rejection('import a from "greeting";', own)).toContain('The module "greeting" is not available');
    expect((await result('import { VERSION } from "lodash@3";', 'VERSION > "4"', own)).value).toBe(true);
    expect((await result('', '(() => { try { return require("greeting") } catch { return "absent" } })()', own)).value).toBe('absent');
    expect(registry.requests).toHaveLength(before);
  });
});
