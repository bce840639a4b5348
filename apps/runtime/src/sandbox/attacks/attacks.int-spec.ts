import { describe, expect, it } from '@jest/globals';
import { startTestSandbox } from '../sandbox-for-tests.js';
import type { JailChoice } from '../jail/choose-jail.js';
import { isSafe } from '../jail/choose-jail.js';
import type { Rung } from '../jail/jail.js';
import { damageOf, damageToOthers, runArena } from './attack-arena.js';
import { attacks, attacksOn } from './attacks.js';

// The strongest rung that works here; another one by SLUICE_ATTACK_JAIL=unshare
const choice = (process.env.SLUICE_ATTACK_JAIL ?? 'auto') as JailChoice;
const { jail, refused } = await findJail();

if (!isSafe(jail)) {
  const reasons = refused.map((rung) => `${rung.jail}: ${rung.reason}`).join('\n  ');
  process.stderr.write(`\nTHE ATTACKS ON THE SANDBOX ARE NOT RUN: no jail works on this machine.\n  ${reasons}\n\n`);
}

(isSafe(jail) ? describe : describe.skip)(`${attacks.length} hostile components in ${jail}`, () => {
  const arena = isSafe(jail) ? runArena(choice) : Promise.reject(new Error('no jail'));
  arena.catch(() => {});

  it('are run to an end of each', async () => {
    expect((await arena).results).toHaveLength(attacks.length);
  }, 600_000);

  it.each(attacksOn(jail).map((attack) => [attack.group, attack.name, attack] as const))('%s: %s', async (_group, _name, attack) => {
    const result = (await arena).results.find((candidate) => candidate.attack === attack)!;
    expect(damageOf(result)).toEqual([]);
  });

  it('do nothing to another account, the parent or the machine', async () => {
    expect(damageToOthers(await arena)).toEqual([]);
    expect((await arena).victim.runs).toBeGreaterThan(100);
  });
});

async function findJail(): Promise<{ jail: Rung; refused: { jail: string; reason: string }[] }> {
  const sandbox = await startTestSandbox({ jail: choice, blanks: 0 });
  try {
    const { jail, refused } = sandbox.health();
    return { jail: jail as Rung, refused };
  } finally {
    await sandbox.close();
  }
}
