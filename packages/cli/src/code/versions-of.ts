import { existsSync, type FSWatcher, realpathSync, watch } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { ComponentFile } from './component-file.js';

/** Editors write a file in several steps. */
const SETTLE_MS = 100;

/** The component as it is now, and again after each change of its files, also one while they are read or while a version is used. */
export async function* versionsOf(file: string, read: () => Promise<ComponentFile>): AsyncGenerator<ComponentFile, never> {
  for (let files = [resolve(file)]; ;) {
    // before the files are read: nobody would notice a change while they are read
    const watched = watchFiles(files);
    try {
      const component = await read();
      const isWatched = isDeepStrictEqual(new Set(component.files), new Set(files));
      files = component.files;
      // it is read again while the files that it imports now are watched
      if (!isWatched) continue;
      yield component;
      await watched.change;
    } finally {
      watched.close();
    }
    await sleep(SETTLE_MS);
  }
}

/** `change` resolves when one of the files has changed. Watches their folders, because editors replace files. */
function watchFiles(files: string[]): { change: Promise<void>; close: () => void } {
  const watchers: FSWatcher[] = [];
  const change = new Promise<void>((done, reject) => {
    // a link, and what it leads to
    const watched = files.flatMap((file) => (existsSync(file) ? [file, realpathSync(file)] : [file]));
    for (const folder of new Set(watched.map((file) => dirname(file)))) {
      const names = watched.filter((file) => dirname(file) === folder).map((file) => basename(file));
      const watcher = watch(folder, (_, changed) => {
        if (changed === null || names.includes(changed)) done();
      });
      watchers.push(watcher.on('error', reject));
    }
  });
  // thrown when it is awaited; until then, Node would end the process
  change.catch(() => {});
  return {
    change,
    close: () => {
      for (const watcher of watchers) watcher.close();
    },
  };
}
