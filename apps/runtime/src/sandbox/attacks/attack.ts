import type { JailChoice } from '../jail/choose-jail.js';
import { damageOf, damageToOthers, runArena } from './attack-arena.js';
import { attacksOn } from './attacks.js';

// node attack.js [bwrap|unshare|setpriv-lsm]: runs every attack on one rung, by default the strongest that works, and prints one line of JSON. `npm run attack`
// runs it for each rung.
const rung = process.argv[2];
const choice = (rung ?? 'auto') as JailChoice;
const arena = await runArena(choice).catch((error: Error) => error);
if (arena instanceof Error || arena.jail !== (rung ?? arena.jail)) {
  console.log(JSON.stringify({ rung, skipped: arena instanceof Error ? arena.message : `only ${arena.jail} works here` }));
} else {
  const held = attacksOn(arena.jail);
  const damage = arena.results
    .filter(({ attack }) => held.includes(attack))
    .map((result) => ({ name: `${result.attack.group}: ${result.attack.name}`, damage: damageOf(result) }));
  const broken = [...damage, { name: 'all together', damage: damageToOthers(arena) }].filter(({ damage }) => damage.length > 0);
  for (const { name, damage } of broken) console.error(`${name}: ${damage.join('; ')}`);
  const contained = damage.filter(({ damage }) => damage.length === 0).length;
  console.log(
    JSON.stringify({
      rung: arena.jail,
      user: process.getuid?.() === 0 ? 'root' : 'unprivileged',
      attacks: held.length,
      contained,
      broken: broken.length,
    }),
  );
  if (broken.length > 0) process.exitCode = 1;
}
// Anything that an attack has left open is a separate finding, but no reason to wait
process.exit();
