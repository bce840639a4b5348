// npm run attack: runs the hostile components of apps/runtime/src/sandbox/attacks against every rung of the jail that works on this machine; one line of JSON for each.
import './setup/check-platform.mjs';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { chown } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { node24 } from './setup/node24.mjs';
import { inRoot, ROOT } from './shell/paths.mjs';
import { ensureBuild, ensureDependencies } from './setup/setup.mjs';

/** The last one is for containers that run as an ordinary user: as root, each process would also have a separate user. */
const RUNGS = [{ rung: 'bwrap' }, { rung: 'unshare' }, { rung: 'setpriv-lsm', uid: 65_534 }];

await ensureDependencies({ say: console.error });
await ensureBuild({ say: console.error });
for (const { rung, uid } of RUNGS) if ((await attack(rung, process.getuid?.() === 0 ? uid : undefined)) !== 0) process.exitCode = 1;

/**
 * @param {string} rung
 * @param {number} [uid] undefined: the current user
 * @returns {Promise<number | null>} the exit code
 */
async function attack(rung, uid) {
  const tmp = mkdtempSync(join(tmpdir(), 'sluice-attack-'));
  if (uid !== undefined) await chown(tmp, uid, uid);
  const child = spawn(node24(), ['--disable-sigusr1', inRoot('dist', 'apps', 'runtime', 'src', 'sandbox', 'attacks', 'attack.js'), rung], {
    cwd: ROOT,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, ...(uid === undefined ? {} : { TMPDIR: tmp, HOME: tmp }) },
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  const code = await new Promise((resolve) => child.once('error', () => resolve(1)).once('exit', resolve));
  rmSync(tmp, { recursive: true, force: true });
  return code;
}
