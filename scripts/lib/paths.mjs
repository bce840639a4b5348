import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository (in an image: the folder that holds `dist/` and `node_modules/`). */
export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** @param {string[]} parts */
export const inRoot = (...parts) => join(ROOT, ...parts);

/** Whether this is a repository, to be installed and built. An image is neither: it was made from a built one. */
export const isRepository = () => existsSync(inRoot('tsconfig.build.json')) && existsSync(inRoot('package-lock.json'));
