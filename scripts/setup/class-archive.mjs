import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Java writes an archive within seconds; an hour is certainly enough. */
const WRITTEN_WITHIN_MS = 3_600_000;

/**
 * The classes of a program as Java has loaded them (class data sharing). The first process writes them to a file when it stops, which takes two seconds;
 * later ones map it into memory: a broker is ready after 0.9 s instead of 1.6, with 1.0 s of CPU time instead of 1.8. Java ignores a file that does not fit.
 *
 * @param {string} prefix of the file's name, with its folder
 * @param {string[]} madeOf what it depends on: the version of Java, the classpath
 * @returns {{ options: string[], ended?: (isWhole: boolean) => void }} the options of the JVM, and what is to be called when it has ended, if it writes the file. `isWhole`: it had loaded
 *   all that it needs, and was not killed
 */
export function classArchive(prefix, madeOf) {
  const file = `${prefix}-${createHash('sha256').update(madeOf.join('\n')).digest('hex').slice(0, 12)}.jsa`;
  removeLeftovers(prefix, file);
  const quiet = ['-XX:+IgnoreUnrecognizedVMOptions', '-Xlog:cds=off', '-Xlog:cds+dynamic=off'];
  if (existsSync(file)) return { options: [...quiet, `-XX:SharedArchiveFile=${file}`] };
  const half = `${file}.${randomUUID()}`;
  return {
    options: [...quiet, `-XX:ArchiveClassesAtExit=${half}`],
    ended: (isWhole) => {
      if (isWhole && existsSync(half)) renameSync(half, file);
      else rmSync(half, { force: true });
    },
  };
}

/**
 * Removes the archives of another version of Java or of an earlier path of this folder, and those that Java wrote after its launcher was killed: 50 MB each.
 * @param {string} prefix
 * @param {string} current
 */
function removeLeftovers(prefix, current) {
  const files = readdirSync(dirname(prefix)).map((name) => join(dirname(prefix), name));
  for (const file of files) {
    if (file === current || !file.startsWith(`${prefix}-`) || !file.includes('.jsa')) continue;
    const { mtimeMs = Infinity } = statSync(file, { throwIfNoEntry: false }) ?? {};
    if (Date.now() - mtimeMs < WRITTEN_WITHIN_MS) continue;
    try {
      rmSync(file, { force: true });
    } catch {
      // the folder belongs to another user
    }
  }
}
