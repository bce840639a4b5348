import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { classArchive } from './class-archive.mjs';

describe('the archive of classes', () => {
  /** @type {string} */
  let folder;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-classes-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const archive = (version = '17') => classArchive(join(folder, 'kafka'), [version, 'jars/*']);
  /** A process that writes its classes when it stops. @param {boolean} isWhole */
  const process = (isWhole) => {
    const { options, ended } = archive();
    writeFileSync(/** @type {string} */ (options.at(-1)).replace('-XX:ArchiveClassesAtExit=', ''), 'classes');
    ended?.(isWhole);
  };

  it('is written by a process that stops, and used by the next one', () => {
    process(true);
    const [file] = readdirSync(folder);
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/^kafka-[0-9a-f]{12}\.jsa$/)]);
    expect(archive().options.at(-1)).toBe(`-XX:SharedArchiveFile=${join(folder, String(file))}`);
  });

  it('is written again for another version of Java', () => {
    process(true);
    expect(archive('21').options.at(-1)).toMatch(/^-XX:ArchiveClassesAtExit=/);
  });

  it('is not kept of a process that was killed, or did not start', () => {
    process(false);
    expect(readdirSync(folder)).toEqual([]);
    archive().ended?.(true);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('removes the archives of earlier versions, and those of killed launchers, but none that may still be written', () => {
    process(true);
    const [current = ''] = readdirSync(folder);
    const left = ['kafka-0a1b.jsa', 'kafka-0a1b.jsa.half', `${current}.half`];
    const kept = [current, `${current}.new`, 'kafka-0a1b', 'kafka-client.jar', 'openapi.yaml'];
    for (const name of [...left, ...kept]) writeFileSync(join(folder, name), '');
    for (const name of [...left, current]) utimesSync(join(folder, name), 0, 0);
    archive();
    expect(readdirSync(folder).sort()).toEqual(kept.sort());
  });
});
