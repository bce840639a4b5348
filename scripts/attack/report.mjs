/**
 * The counts of some attacks. `ran`: those whose component was accepted and run; the others were refused after they had been loaded.
 * @typedef {{ attacks: number, contained: number, broken: number, ran?: number }} Counts
 */

/**
 * Counts the outcomes, and prints the damage to standard error.
 *
 * @param {import('./through-api.mjs').Result} result the damage to others counts as one attack that broke something
 * @returns {Counts}
 */
export function report({ outcomes, others, victim }) {
  if (victim) console.error(`the victim: ${victim.rounds} rounds, the slowest took ${victim.slowestMs} ms`);
  const broken = outcomes.filter(({ damage }) => damage.length > 0);
  for (const { attack, damage } of broken) console.error(`${attack.group}: ${attack.name}: ${damage.join('; ')}`);
  for (const damage of others) console.error(`all together: ${damage}`);
  return {
    attacks: outcomes.length,
    contained: outcomes.length - broken.length,
    broken: broken.length + (others.length > 0 ? 1 : 0),
    ran: outcomes.filter(({ status }) => status !== undefined).length,
  };
}

/**
 * The counts of both parts together, and of each.
 * @param {{ sandbox: Counts, instance: Counts }} parts
 */
export function total({ sandbox, instance }) {
  const sum = (/** @type {'attacks' | 'contained' | 'broken'} */ count) => sandbox[count] + instance[count];
  return { attacks: sum('attacks'), contained: sum('contained'), broken: sum('broken'), sandbox, instance };
}
