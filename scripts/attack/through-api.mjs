import { setTimeout as sleep } from 'node:timers/promises';
import { inRoot } from '../shell/paths.mjs';
import { createCounter, openAccount } from './account.mjs';
import { keepVictim } from './victim.mjs';

/** @typedef {import('../../apps/runtime/src/sandbox/attacks/attacks.js').Attack} Attack */
/** @typedef {import('../../apps/runtime/src/sandbox/attacks/attacks.js').Targets} Targets */

/**
 * The outcome of one attack. `refused`: why the component could not be deployed; `status`: of its run; `damage`: empty if it was contained.
 * @typedef {{ attack: Attack, refused?: string, status?: string, damage: string[] }} Outcome
 */

/**
 * `others`: the damage to others than the hostile accounts.
 * @typedef {{ outcomes: Outcome[], others: string[], victim?: import('./victim.mjs').Notes }} Result
 */

/** Code that an attack has left running gets a turn. */
const AFTERWARDS_MS = 100;
/** An event of a run is listed this long after it. */
const LISTED_WITHIN_MS = 3000;
/** Beside its limit, the longest run waits for its turn, and its process starts. */
const SLACK_MS = 60_000;
const ENDED_BY_ITSELF = ['succeeded', 'failed'];
/** In texts that the API returns: what an attack reports, and what it writes in the name of others. */
const BREACH = /BREACH [^"\\]*|SPOOF/;

/** @returns {Promise<typeof import('../../apps/runtime/src/sandbox/attacks/attacks.js') & typeof import('../../apps/runtime/src/sandbox/attacks/attack-code.js')>} */
export async function loadAttacks() {
  const folder = ['dist', 'apps', 'runtime', 'src', 'sandbox', 'attacks'];
  return { ...(await import(inRoot(...folder, 'attacks.js'))), ...(await import(inRoot(...folder, 'attack-code.js'))) };
}

/**
 * Attacks an instance through its REST API like hostile accounts: each deploys one hostile component after another and runs it, beside a victim.
 * The first two are planted and succeed: if they are not noticed, no other breach would be.
 *
 * @param {object} options
 * @param {string} options.apiUrl with the version
 * @param {string[]} options.hostileKeys of separate accounts; one attack at a time is made with each
 * @param {string} [options.victimKey] the key of another account, which must not notice the attacks. If it is missing, this is not checked
 * @param {boolean} [options.hasWebhook] whether the instance reaches 127.0.0.1 of this machine
 * @param {Attack[]} options.attacks
 * @param {Targets} options.targets
 * @param {string} [options.internet] the host of the mock internet
 * @param {number} options.runSeconds the longest run of the instance
 * @param {AbortSignal} [options.stopped] ends the attacks early
 * @returns {Promise<Result>} What it has created is deleted again, except for components
 */
export async function attackThroughApi({ apiUrl, hostileKeys, victimKey, hasWebhook = false, attacks, stopped, ...options }) {
  const { controls, attackCode, loadingCode } = await loadAttacks();
  const hostiles = hostileKeys.map((key) => openAccount(apiUrl, key, stopped));
  const innocent = victimKey === undefined ? undefined : openAccount(apiUrl, victimKey, stopped);
  // Those that spoil the process of their account come last
  const waiting = [...controls, ...attacks.filter(isOfInstances).toSorted((a, b) => Number(a.spoilsItself) - Number(b.spoilsItself))];
  /** @type {Outcome[]} */
  const outcomes = [];
  try {
    const victim = innocent && (await keepVictim(innocent, hasWebhook));
    const makeAttacks = async (/** @type {import('./account.mjs').Account} */ account) => {
      const counter = await createCounter(account);
      for (let attack = waiting.shift(); attack; attack = waiting.shift())
        outcomes.push(await attackOnce(account, counter, attack, { ...options, attackCode, loadingCode }));
    };
    const attacking = await Promise.allSettled(hostiles.map(makeAttacks));
    const notes = await victim?.stop();
    for (const each of attacking) if (each.status === 'rejected') throw each.reason;
    const missed = outcomes.filter(({ attack, damage }) => controls.includes(attack) && !damage.some((each) => each.startsWith('BREACH')));
    return {
      outcomes: outcomes.filter(({ attack }) => !controls.includes(attack)),
      others: [
        ...missed.map(({ attack }) => `a planted breach was not noticed ${attack.whileLoading ? 'while it was loaded' : 'in a run'}`),
        ...(notes?.failures ?? []).map((failure) => `the victim: ${failure}`),
      ],
      victim: notes,
    };
  } finally {
    await Promise.all([...hostiles, innocent].map((account) => account?.removeAll()));
  }
}

const isOfInstances = (/** @type {Attack} */ { needsLowLimits }) => !needsLowLimits;

/**
 * @param {import('./account.mjs').Account} hostile
 * @param {Awaited<ReturnType<typeof createCounter>>} counter
 * @param {Attack} attack
 * @param {{ targets: Targets, internet?: string, runSeconds: number } & Pick<Awaited<ReturnType<typeof loadAttacks>>, 'attackCode' | 'loadingCode'>} options
 * @returns {Promise<Outcome>}
 */
async function attackOnce({ call, must }, counter, attack, { targets, internet, runSeconds, attackCode, loadingCode }) {
  const code = attack.whileLoading
    ? loadingCode(attack, targets, { guest: 'hardened' })
    : attackCode(attack, { guest: 'hardened', internet });
  /** @type {Outcome} */
  const outcome = { attack, damage: [] };
  const seen = [];
  const { status, text, data } = await call('POST', '/sources', { component_code: code });
  if (status === 200) {
    const path = `/sources/${data.id}`;
    const { id } = await must('POST', `${path}/run`, { event: targets });
    const run = await ended(must, path, id, runSeconds * 1000 + SLACK_MS);
    if (run) seen.push(JSON.stringify([run, await eventsOf(must, path, run.emitted)]));
    else outcome.damage.push('its run did not end');
    outcome.status = run?.status;
    await must('DELETE', path);
  } else {
    outcome.refused = `${status} ${text.slice(0, 300)}`;
    seen.push(text);
    if (status !== 400) outcome.damage.push(`POST /sources returned ${outcome.refused}`);
  }
  await sleep(AFTERWARDS_MS);
  const problem = await counter.request();
  // In the others, the process has ended already
  if (!problem && ENDED_BY_ITSELF.includes(outcome.status ?? '')) await counter.endProcess();
  if (problem && !attack.spoilsItself) outcome.damage.push(`the next run of its account: ${problem}`);
  outcome.damage.push(...seen.map((each) => BREACH.exec(each)?.[0] ?? '').filter(Boolean));
  return outcome;
}

/**
 * @param {import('./account.mjs').Account['must']} must
 * @param {string} path of the source
 * @param {string} run
 * @param {number} withinMs
 * @returns {Promise<any>} the run in the list; undefined if it has not ended
 */
async function ended(must, path, run, withinMs) {
  const until = Date.now() + withinMs;
  for (let pauseMs = 100; Date.now() < until; pauseMs = Math.min(pauseMs * 1.5, 500)) {
    await sleep(pauseMs);
    const found = (await must('GET', `${path}/runs`)).find((/** @type {{ id: string }} */ { id }) => id === run);
    if (found) return found;
  }
  return undefined;
}

/**
 * The last events of a source, on all of its streams.
 * @param {import('./account.mjs').Account['must']} must
 * @param {string} path of the source
 * @param {number} emitted how many events its run has emitted; those with a later time of delivery are never listed
 */
async function eventsOf(must, path, emitted) {
  const until = Date.now() + LISTED_WITHIN_MS;
  for (;;) {
    const events = await must('GET', `${path}/event_summaries?event_name=*&limit=100`);
    if (events.length >= Math.min(emitted, 100) || Date.now() > until) return events;
    await sleep(100);
  }
}
