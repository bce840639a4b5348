import { beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { curatedModules } from '../curated-modules.js';
import { RunnerConfig } from '../runner.config.js';
import { advice, chooseJail, isSafe, ladder, openSocket } from './choose-jail.js';
import { buildJailRoot, type JailRoot } from './jail-root.js';
import { RunnerUsers } from './runner-users.js';

it.each(ladder)('RUNNER_JAIL accepts the rung %s by the name that the documents use', (rung) =>
  expect(RunnerConfig.read({ RUNNER_JAIL: rung }).jail).toBe(rung),
);

describe('choosing a jail', () => {
  let root: JailRoot;
  const uid = new RunnerUsers().next();
  beforeAll(async () => (root = await buildJailRoot(join(tmpdir(), `sluice-test-${process.getuid?.() ?? ''}`, 'sandbox'), curatedModules)));

  it('never takes one that does not hold when one is required', async () => {
    for (const choice of ['setpriv', 'none'] as const) {
      const chosen = await chooseJail(root, choice, true, uid).catch((error: Error) => error);
      if (chosen instanceof Error)
        expect(chosen.message).toMatch(/No jail for components works on this machine \(.*cannot contain hostile code/);
      else expect(isSafe(chosen.jail.rung)).toBe(true);
    }
  });

  it('reports why stronger rungs were not used', async () => {
    const { jail, refused } = await chooseJail(root, 'auto', false, uid);
    const above = refused.map((rung) => rung.jail);
    expect([...above, jail.rung]).toEqual(['bwrap', 'unshare', 'setpriv-lsm', 'setpriv', 'none'].slice(0, above.length + 1));
    expect(refused.every(({ reason }) => reason.length > 0)).toBe(true);
  });

  it('refuses a rung whose program does not start, with its reason', async () => {
    const broken = { ...root, dir: '/nonexistent' };
    await expect(chooseJail(broken, 'bwrap', true, uid)).rejects.toThrow(/No jail for components works on this machine \(bwrap: .+\)/);
  });
});

it.each([
  ['256', /^Raise the hard limit of open files \(ulimit -n\) from 256 to at least 1024$/],
  ['1024', /^Install bubblewrap/],
  ['unlimited', /^Install bubblewrap/],
])('advises what gives a machine a jail whose hard limit of open files is %s', (hard, expected) => {
  const limits = `Max processes             100                  100                  processes\nMax open files            256                  ${hard}                 files\n`;
  expect(advice(limits)).toMatch(expected);
});

it.each([
  ['setpriv-lsm', 'bus', false, true],
  ['setpriv-lsm', 'another', false, false],
  // the component has another user then
  ['setpriv-lsm', 'bus', true, false],
  // with namespaces, no socket is visible
  ['unshare', 'bus', false, false],
] as const)('the rung %s, where the socket %s is open and Sluice is root (%s), is refused: %s', async (rung, socket, isRoot, isRefused) => {
  const session = mkdtempSync(join(tmpdir(), 'sluice-session-'));
  try {
    writeFileSync(join(session, socket), '');
    const reason = await openSocket(rung, [join(session, 'none'), join(session, 'bus')], isRoot);
    expect(reason?.includes(join(session, socket)) ?? false).toBe(isRefused);
  } finally {
    rmSync(session, { recursive: true });
  }
});
