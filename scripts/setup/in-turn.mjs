import { mkdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { claim, deleteOldClaims, otherClaimant, takeBackClaim } from '../pid-files/claims.mjs';
import { readForeignPidFile, readPidFile } from '../pid-files/pid-file.mjs';
import { ExplainedError } from '../shell/explained-error.mjs';
import { inRoot } from '../shell/paths.mjs';

const CLAIMS = inRoot('.cache', 'claims');

/**
 * Runs a step that changes `node_modules` or `dist` while no other command in this checkout runs one. Otherwise, npm would delete the packages that another
 * command has just installed, and esbuild would read a module that another command's compiler is writing. Commands in a container do not count.
 *
 * The step checks what there is to do: the other command may have done it.
 * @template T
 * @param {(line: string) => void} say
 * @param {() => Promise<T>} step
 * @returns {Promise<T>}
 */
export async function inTurn(say, step) {
  let hasWaited = false;
  for (;;) {
    claimHere();
    const other = otherClaimant(CLAIMS, readPidFile);
    if (!other) break;
    takeBackClaim(CLAIMS);
    if (!hasWaited) say(`… waiting for another command that installs or builds here (process ${other.pid})`);
    hasWaited = true;
    // not all at the same time
    await sleep(30 + Math.random() * 40);
  }
  try {
    // not those of a container, whose commands exclude each other by them
    deleteOldClaims(CLAIMS, (file) => readPidFile(file) ?? readForeignPidFile(file));
    return await step();
  } finally {
    takeBackClaim(CLAIMS);
  }
}

/** @throws {ExplainedError} if this user may not write here */
function claimHere() {
  try {
    mkdirSync(CLAIMS, { recursive: true });
    claim(CLAIMS);
  } catch (error) {
    const { message } = /** @type {Error} */ (error);
    throw new ExplainedError(`Sluice has to install packages or to build here, and this user cannot write to ${CLAIMS}: ${message}`);
  }
}
