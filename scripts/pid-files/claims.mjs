import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { removePidFile, writePidFile } from './pid-file.mjs';

/** Unique also among processes of several PID namespaces. */
const NAME = `${process.pid}-${randomBytes(4).toString('hex')}`;

/**
 * Claims exclude the other processes that use the same folder: each writes a separate file, its claim, before it looks for the claims of others. Of two, the later
 * one sees the earlier one, however long a process pauses between two steps. A process that sees another claim takes back its own; one that sees none keeps its
 * claim until it has finished.
 * @param {string} folder
 */
export const claim = (folder) => writePidFile(ownClaim(folder), process.pid);

/** @param {string} folder */
export const takeBackClaim = (folder) => removePidFile(ownClaim(folder));

/**
 * @template {object} T
 * @param {string} folder
 * @param {(file: string) => T | null} find returns the process that has written a file, if it may still be running
 */
export const otherClaimant = (folder, find) =>
  claims(folder)
    .filter((file) => file !== ownClaim(folder))
    .map(find)
    .find((claimant) => claimant !== null);

/**
 * Of processes that were killed.
 * @param {string} folder claimed by this process
 * @param {(file: string) => object | null} find as for `otherClaimant`
 */
export function deleteOldClaims(folder, find) {
  for (const file of claims(folder)) if (!find(file)) removePidFile(file);
}

/** @param {string} folder */
const ownClaim = (folder) => join(folder, NAME);

/**
 * Without their drafts, which a process that is killed at this moment leaves behind.
 * @param {string} folder
 */
const claims = (folder) =>
  readdirSync(folder)
    .filter((name) => /^\d+(-\w+)?$/.test(name))
    .map((name) => join(folder, name));
