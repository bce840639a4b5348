import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { build } from 'esbuild';
import manifest from '../package.json' with { type: 'json' };

const licence = readFileSync(join(import.meta.dirname, '..', '..', '..', 'LICENSE'), 'utf8');

let folder: string;
/** Where Node finds the package when a program in the folder imports it. */
const installed = (): string => join(folder, 'node_modules', '@sluice', 'client');
const run = (program: string, ...args: string[]): string => execFileSync(program, args, { cwd: folder, encoding: 'utf8' });

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-client-'));
  mkdirSync(installed(), { recursive: true });
  run('npm', 'pack', join(import.meta.dirname, '..'), '--silent');
  run('tar', '-xzf', `sluice-client-${manifest.version}.tgz`, '-C', installed(), '--strip-components=1');
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('the package that npm pack makes', () => {
  it('contains the client, which Node can import', () => {
    const program = "import { SluiceClient } from '@sluice/client'; console.log(new SluiceClient({ url: 'http://a/v1', key: 'k' }).url);";
    expect(run(process.execPath, '--input-type=module', '--eval', program)).toBe('http://a\n');
  });

  it('adds only the verification to a receiver that imports nothing else', async () => {
    const contents = "import { verifyWebhook } from '@sluice/client'; export default verifyWebhook;";
    const { outputFiles } = await build({
      ...{ stdin: { contents, resolveDir: folder }, bundle: true, minify: true, format: 'esm', platform: 'neutral', write: false },
    });
    expect(outputFiles[0]!.contents.length).toBeLessThan(4096);
  });

  it('contains the types of what it exports', () => {
    expect(existsSync(join(installed(), manifest.exports['.'].types))).toBe(true);
  });

  it('the installed package contains the licence of Sluice', () => {
    expect(readFileSync(join(installed(), 'LICENSE'), 'utf8')).toBe(licence);
  });

  it('contains a manifest that programs may require', () => {
    expect(run(process.execPath, '--print', "require('@sluice/client/package.json').version")).toBe(`${manifest.version}\n`);
  });
});
