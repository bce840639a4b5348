import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { ComponentFile } from './component-file.js';

/**
 * How often the files are compared. A watcher of Node stays with a folder that is renamed or deleted, as `git checkout` and build tools do, and notices
 * nothing on network drives.
 */
const COMPARE_MS = 200;
/** Editors write a file in several steps. */
const SETTLE_MS = 100;

/** The component as it is now, and again after each change of its files, also one while they are read or while a version is used. */
export async function* versionsOf(file: string, read: () => Promise<ComponentFile>): AsyncGenerator<ComponentFile, never> {
  for (let files = [resolve(file)]; ;) {
    // before the files are read: nobody would notice a change while they are read
    const before = files.map(stateOf);
    const component = await read();
    const isCompared = isDeepStrictEqual(new Set(component.files), new Set(files));
    if (!isCompared) {
      // it is read again, after a look at the files that it imports now
      files = component.files;
      continue;
    }
    yield component;
    while (isDeepStrictEqual(files.map(stateOf), before)) await sleep(COMPARE_MS);
    await sleep(SETTLE_MS);
  }
}

/** Differs after each change of the file, or of the one that a link leads to. Undefined if there is none. */
function stateOf(file: string): bigint[] | undefined {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs];
  } catch {
    return undefined;
  }
}
