import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository (in an image: the folder that holds `dist/` and `node_modules/`). */
export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** @param {string[]} parts */
export const inRoot = (...parts) => join(ROOT, ...parts);
