// npm run attack [-- --url URL]: runs the hostile components of apps/runtime/src/sandbox/attacks against every rung of the jail that works on this machine, in
// containers, or against an instance that is running. Prints one line of JSON for each.
import './setup/check-platform.mjs';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { chown } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { attackContainers } from './attack/containers.mjs';
import { report, total } from './attack/report.mjs';
import { attackRunning } from './attack/running-instance.mjs';
import { node24 } from './setup/node24.mjs';
import { runScript } from './shell/command.mjs';
import { inRoot, ROOT } from './shell/paths.mjs';
import { ensureBuild, ensureDependencies, ensureKafka } from './setup/setup.mjs';

const USAGE = `Usage: npm run attack [-- options]

Runs hostile components against each rung of the jail: in a sandbox that keeps everything that the jail must contain, and in an instance that it
starts, through its REST API. Then it does so in containers, if Docker responds. It takes about four minutes for each.

  --rung RUNG       only this one: bwrap, unshare, setpriv-lsm or container
  --url URL         instead, attacks the running instance with this REST API, with the accounts of the keys in SLUICE_API_KEY
  --victim-key KEY  of an account beside them, which must not notice anything (default: SLUICE_VICTIM_API_KEY; without one, there is none)

SLUICE_API_KEY may contain several keys of separate accounts, separated by commas: with each, one attack at a time is made. With one key and the usual
limits of runs, the attacks on a running instance take half an hour. They delete the sources that they create; components remain.`;

/** The last one is for containers that run as an ordinary user: as root, each process would also have a separate user. */
const RUNGS = [{ rung: 'bwrap' }, { rung: 'unshare' }, { rung: 'setpriv-lsm', uid: 65_534 }];
const ATTACKS = ['dist', 'apps', 'runtime', 'src', 'sandbox', 'attacks', 'attack.js'];

/** @typedef {import('./attack/report.mjs').Counts & { skipped?: string }} Result */

await runScript(
  { usage: USAGE, options: { rung: { type: 'string' }, url: { type: 'string' }, 'victim-key': { type: 'string' } } },
  async ({ rung: only, url, 'victim-key': victimKey = process.env.SLUICE_VICTIM_API_KEY }) => {
    await ensureDependencies({ say: console.error });
    await ensureBuild({ say: console.error });
    let broken = 0;
    const print = (/** @type {Partial<Result>} */ line) => {
      console.log(JSON.stringify(line));
      broken += line.broken ?? 0;
    };
    if (url) print(await attackRunning({ url, keys: process.env.SLUICE_API_KEY ?? '', victimKey }));
    else {
      await ensureKafka({ say: console.error });
      for (const { rung, uid } of RUNGS)
        if (!only || only === rung) print(await attackRung(rung, process.getuid?.() === 0 ? uid : undefined));
      if (!only || only === 'container') for await (const line of attackContainers()) print(line);
    }
    return broken === 0 ? 0 : 1;
  },
);

/**
 * @param {string} rung
 * @param {number} [uid] undefined: the current user
 */
async function attackRung(rung, uid) {
  const sandbox = await run(inRoot(...ATTACKS), rung, uid);
  if (sandbox.skipped !== undefined) return { rung, skipped: sandbox.skipped };
  const instance = await run(inRoot('scripts', 'attack', 'own-instance.mjs'), rung, uid);
  const user = process.getuid?.() === 0 && uid === undefined ? 'root' : 'unprivileged';
  return { rung, user, ...total({ sandbox, instance }) };
}

/**
 * Runs one of the programs that attack, as a user.
 * @param {string} program
 * @param {string} rung
 * @param {number} [uid]
 * @returns {Promise<Result>} what it prints; if it fails without, one that is broken
 */
async function run(program, rung, uid) {
  const tmp = mkdtempSync(join(tmpdir(), 'sluice-attack-'));
  if (uid !== undefined) await chown(tmp, uid, uid);
  const child = spawn(node24(), ['--disable-sigusr1', program, rung], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...(uid === undefined ? {} : { TMPDIR: tmp, HOME: tmp }) },
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  let printed = '';
  child.stdout.on('data', (part) => (printed += part));
  await new Promise((resolve) => child.once('error', resolve).once('close', resolve));
  rmSync(tmp, { recursive: true, force: true });
  try {
    const { attacks, contained, broken, ran, skipped } = JSON.parse(printed);
    return { attacks, contained, broken, ran, skipped };
  } catch {
    console.error(`${program} ${rung} has failed`);
    return report({ outcomes: [], others: [`${program} has failed`] });
  }
}
