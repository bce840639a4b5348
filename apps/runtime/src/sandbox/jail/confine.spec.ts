import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from './command-line.js';
import { confineProgram } from './confine.js';
import { seccompFilter } from './seccomp-filter.js';

const run = promisify(execFile);
const program = process.platform === 'linux' ? confineProgram(seccompFilter()) : null;

(program ? describe : describe.skip)('the program that confines itself', () => {
  let dir: string;
  let confine: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'sluice-confine-'));
    confine = join(dir, 'confine');
    await writeFile(confine, program!, { mode: 0o755 });
    await writeFile(join(dir, 'readable'), 'yes');
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  /** The output of a script in the confined Node. */
  const confined = async (rules: string[], script: string, launcher = confine): Promise<unknown> =>
    JSON.parse(
      (await run(launcher, [...rules, '-', process.execPath, '-p', `JSON.stringify((() => { ${script} })())`], { env: { KEPT: 'yes' } }))
        .stdout,
    );
  const everything = ['x/', 'r/'];
  const status = 'return Object.fromEntries(fs.readFileSync("/proc/self/status", "utf8").split("\\n").map((line) => line.split(":\\t")))';

  it.each([
    ['without rules', []],
    ['with rules', everything],
  ])('%s gives up privileges and filters system calls', async (_, rules) => {
    expect(await confined(rules, status)).toMatchObject({ NoNewPrivs: '1', Seccomp: '2' });
  });

  it('passes arguments and the environment on', async () => {
    expect(await confined([], 'return [process.env.KEPT, process.argv.length]')).toEqual(['yes', 1]);
  });

  it('denies every file that no rule names', async () => {
    const rules = ['x/lib', 'x/lib64', 'x/usr', 'r/etc', `x${process.execPath}`];
    const attempts = 'const t = (f) => { try { f(); return "ok" } catch (e) { return e.code } };';
    const script = `${attempts} return [t(() => fs.readFileSync("${dir}/readable")), t(() => fs.readdirSync("/")), t(() => fs.writeFileSync("${dir}/new", ""))]`;
    expect(await confined(rules, script)).toEqual(['EACCES', 'EACCES', 'EACCES']);
    expect(await confined([...rules, `r${dir}`], script)).toEqual(['ok', 'EACCES', 'EACCES']);
  });

  it('writes below the folders that a rule lets it write to, and makes no links', async () => {
    const rules = ['x/lib', 'x/lib64', 'x/usr', 'r/etc', `x${process.execPath}`, `w${dir}`];
    const attempts = 'const t = (f) => { try { f(); return "ok" } catch (e) { return e.code } };';
    const file = JSON.stringify(join(dir, 'made', 'file'));
    const steps = [
      `fs.mkdirSync(${JSON.stringify(join(dir, 'made'))})`,
      `fs.writeFileSync(${file}, "text")`,
      `fs.renameSync(${file}, ${file} + "2")`,
      `fs.truncateSync(${file} + "2", 1)`,
      `fs.rmSync(${JSON.stringify(join(dir, 'made'))}, { recursive: true })`,
      `fs.symlinkSync("/etc", ${JSON.stringify(join(dir, 'link'))})`,
      'fs.writeFileSync("/tmp/sluice-confine-outside", "")',
    ];
    const script = `${attempts} return [${steps.map((step) => `t(() => ${step})`).join()}]`;
    expect(await confined(rules, script)).toEqual(['ok', 'ok', 'ok', 'ok', 'ok', 'EACCES', 'EACCES']);
  });

  it('does not outlive its parent, whatever it asks the kernel for', async () => {
    await expect(run(confine, ['-', findProgram('setpriv')!, '--pdeathsig', 'clear', '/bin/true'])).rejects.toMatchObject({
      stderr: expect.stringContaining('Operation not permitted'),
    });
  });

  it('leaves the rights and the times of files as they are, where they are shared', async () => {
    const strict = join(dir, 'confine-strict');
    await writeFile(strict, confineProgram(seccompFilter(process.arch, 'shared'))!, { mode: 0o755 });
    const file = JSON.stringify(join(dir, 'readable'));
    const steps = [
      `fs.chmodSync(${file}, 0o644)`,
      `fs.utimesSync(${file}, 1, 1)`,
      `fs.chownSync(${file}, process.getuid(), process.getgid())`,
      `fs.watch(${file}).close()`,
    ];
    const script = `const t = (f) => { try { f(); return "ok" } catch (e) { return e.code } }; return [${steps.map((step) => `t(() => ${step})`).join()}]`;
    expect(await confined([], script)).toEqual(['ok', 'ok', 'ok', 'ok']);
    expect(await confined([], script, strict)).toEqual(['EPERM', 'EPERM', 'EPERM', 'EPERM']);
  });

  it('starts no other program', async () => {
    const script = 'return child_process.spawnSync("/bin/true").error.code';
    expect(await confined([], script)).toBe('EPERM');
  });

  it.each([
    ['a path that does not exist', ['x/nonexistent', '-', '/bin/true'], 104],
    ['a program that does not exist', ['-', '/nonexistent'], 107],
  ])('ends at %s', async (_, args, code) => {
    await expect(run(confine, args)).rejects.toMatchObject({ code });
  });
});
