import { existsSync } from 'node:fs';
import { rename, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ExplainedError } from '../shell/explained-error.mjs';

/**
 * Moves the data of a broker to its folder if an earlier version has put it elsewhere: it wrote the folder's path to the broker's configuration in UTF-8, which Java
 * reads as ISO-8859-1, so the data of `café` went to `cafÃ©`.
 *
 * @param {string} data the folder where it belongs
 * @param {(line: string) => void} log
 */
export async function moveMisplacedData(data, log) {
  const misplaced = Buffer.from(data).toString('latin1');
  // a broker that has its configuration there has not been started on this folder
  const isThere = existsSync(join(misplaced, 'meta.properties')) && !existsSync(join(dirname(misplaced), 'server.properties'));
  if (misplaced === data || !isThere) return;
  try {
    await rename(misplaced, data);
  } catch (error) {
    const { message } = /** @type {Error} */ (error);
    throw new ExplainedError(`An earlier version wrote the broker's data to ${misplaced}. Move it to ${data}, which failed: ${message}.`);
  }
  log(`moved the broker's data from ${misplaced}, where an earlier version wrote it, to ${data}`);
  await removeEmpty(dirname(misplaced));
}

/** Removes a folder and those above it, up to the first one that has other files. @param {string} folder */
async function removeEmpty(folder) {
  try {
    await rmdir(folder);
  } catch {
    return;
  }
  await removeEmpty(dirname(folder));
}
