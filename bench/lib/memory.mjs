import { readFileSync } from 'node:fs';
import { withDescendants } from '../../scripts/pid-files/process-tree.mjs';

/**
 * Proportional set size of processes and their descendants, in MB (Linux): a page that several processes share counts for each in part.
 *
 * @param {(number | undefined)[]} pids
 */
export const pssMb = (pids) => [...withDescendants(pids)].reduce((sum, pid) => sum + pssKb(pid), 0) / 1024;

/**
 * Of one process, in KB; 0 if there is none.
 *
 * @param {number | undefined} pid
 */
export function pssKb(pid) {
  try {
    return Number(/^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
  } catch {
    // it has ended meanwhile
    return 0;
  }
}
