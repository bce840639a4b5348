import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { brokerAccess } from './broker-access.mjs';

describe('the password of the services on the broker of npm start', () => {
  /** @type {string} */
  let dir;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-broker-'));
    mkdirSync(join(dir, 'data'));
    writeFileSync(join(dir, 'data', 'meta.properties'), '');
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  const access = () => brokerAccess(dir, 9092);
  const accept = async () => (await access()).security.services?.accepted();

  it('counts as known once the broker has accepted it', async () => {
    expect((await access()).isKept).toBe(false);
    await accept();
    expect((await access()).isKept).toBe(true);
  });

  it.each([
    ['changed', () => writeFileSync(join(dir, 'password'), 'another\n')],
    ['deleted', () => rmSync(join(dir, 'password'))],
  ])('does not count as known after its file was %s: the services wait until the broker has it', async (_, change) => {
    await accept();
    change();
    expect((await access()).isKept).toBe(false);
  });
});
