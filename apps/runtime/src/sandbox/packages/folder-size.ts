import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

export interface FolderSize {
  files: number;
  bytes: number;
}

/** Counts what is below a folder, until more than `most` is found. Links are not followed; what disappears meanwhile is not counted. */
export async function folderSize(folder: string, most: FolderSize = { files: Infinity, bytes: Infinity }): Promise<FolderSize> {
  const size = { files: 0, bytes: 0 };
  const waiting = [folder];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const dir = next;
    for (const entry of await readdir(dir, { withFileTypes: true }).catch(() => [])) {
      size.files++;
      if (entry.isDirectory()) waiting.push(join(dir, entry.name));
      else size.bytes += (await lstat(join(dir, entry.name)).catch(() => null))?.size ?? 0;
      if (size.files > most.files || size.bytes > most.bytes) return size;
    }
  }
  return size;
}
