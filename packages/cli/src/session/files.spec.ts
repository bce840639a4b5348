import { linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exportAll } from '../manifests/export.js';
import { init } from '../tools/init.js';
import { types } from '../tools/types.js';
import { fileText, isFile, readText, replaceFile, secretIn, writeTo } from './files.js';
import type { Session } from './session.js';

let folder: string;
const at = (...names: string[]): string => join(folder, ...names);
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-files-'));
  writeFileSync(at('file'), '\ufeff text \r\n');
  writeFileSync(at('latin1'), Buffer.from('caf\xe9', 'latin1'));
  mkdirSync(at('folder.yaml'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('a file that an argument names', () => {
  it('has a text, without the byte order mark that some editors write', () => {
    expect([readText(at('file')), fileText(at('file')), secretIn(at('file'))]).toEqual([' text \r\n', ' text ', 'text']);
  });

  it.each([
    [['none'], /^there is no file .*none$/],
    [['folder.yaml'], /folder\.yaml cannot be read: EISDIR: illegal operation on a directory$/],
    [['latin1'], /latin1 is not UTF-8$/],
    [['file', 'x'], /file\/x cannot be read: ENOTDIR: not a directory$/],
  ])('is wrong usage if it cannot be read: %j', (names, message) => {
    expect(() => readText(at(...names))).toThrow(expect.objectContaining({ code: 2, message: expect.stringMatching(message) }));
  });

  it('can be a file, but no folder', () => {
    expect([at('file'), at('folder.yaml'), at('none'), 'x'.repeat(10_000)].map(isFile)).toEqual([true, false, false, false]);
  });
});

describe('what cannot be written', () => {
  const lists = Object.fromEntries(['listSubscriptions', 'listAutoSubscriptions'].map((name) => [name, async () => ({ data: [] })]));
  const session = {
    sluice: { ...lists, each: async function* () {}, getCurrentUser: async () => ({ data: { id: 'u_1' } }) },
  } as unknown as Session;

  it.each<[string, () => unknown]>([
    ['init', () => init(session, at('file', 'x'), {})],
    ['types', () => types(session, at('file'))],
    ['export', () => exportAll(session, at('file'))],
  ])('is wrong usage, in one line: %s', async (_, run) => {
    await expect((async () => run())()).rejects.toMatchObject({
      code: 2,
      message: expect.stringMatching(/^\/.* cannot be written: E[^\n]*$/),
    });
  });

  it.each(['ENOSPC', 'EDQUOT', 'EFBIG'])('exits with 1 if the disk has no space: %s', (code) => {
    const fail = (): never => {
      throw Object.assign(new Error(`${code}: no space left on device, write`), { code });
    };
    expect(() => writeTo('file', fail)).toThrow(
      expect.objectContaining({ code: 1, message: `file cannot be written: ${code}: no space left on device` }),
    );
  });

  it('a file that cannot be replaced leaves no draft behind', () => {
    expect(() => replaceFile(at('folder.yaml'), 'text')).toThrow('EISDIR');
    expect(readdirSync(folder).sort()).toEqual(['file', 'folder.yaml', 'latin1']);
  });

  it('a file that is replaced keeps its mode, because it may contain secrets', () => {
    const file = at('private');
    writeFileSync(file, 'before', { mode: 0o600 });
    replaceFile(file, 'text');
    expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777]).toEqual(['text', 0o600]);
    rmSync(file);
  });

  it('export replaces each file as a whole, so an end in the middle of a write loses none', async () => {
    const to = at('exported');
    mkdirSync(to);
    writeFileSync(join(to, 'sluice.yaml'), 'before');
    linkSync(join(to, 'sluice.yaml'), join(to, 'before'));
    await exportAll({ ...session, note: () => {} } as unknown as Session, to);
    expect([join(to, 'before'), join(to, 'sluice.yaml')].map((file) => readFileSync(file, 'utf8'))).toEqual(['before', '']);
    rmSync(to, { recursive: true });
  });
});
