import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository (in an image: the folder of `dist/` and `node_modules/`). */
export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** @param {string[]} parts */
export const inRoot = (...parts) => join(ROOT, ...parts);

/** Whether this is a repository, in which packages are installed and sources are built. An image is made from a built one. */
export const isRepository = () => existsSync(inRoot('tsconfig.build.json')) && existsSync(inRoot('package-lock.json'));
