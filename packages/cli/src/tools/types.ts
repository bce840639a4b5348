import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile, writeTo } from '../session/files.js';
import type { Session } from '../session/session.js';

/** The text of types/sluice-env.d.ts; the bundler puts it in. */
declare const SLUICE_TYPES: string;

/** Makes an editor, and `tsc`, check the components of a folder. JavaScript is checked, too; nothing is compiled. */
export const PROJECT = {
  compilerOptions: {
    ...{ target: 'es2024', module: 'preserve', lib: ['es2024', 'dom'] },
    ...{ allowJs: true, checkJs: true, noEmit: true, strict: true, noImplicitAny: false, skipLibCheck: true },
  },
};

/** `sluice types [FOLDER]`: writes the types of components, and the settings that use them unless the folder has some. */
export function types(session: Session, folder = '.'): void {
  const file = join(folder, 'sluice-env.d.ts');
  const project = ['tsconfig.json', 'jsconfig.json'].map((name) => join(folder, name)).find((path) => existsSync(path));
  const written = project ?? join(folder, 'tsconfig.json');
  writeTo(folder, () => {
    mkdirSync(folder, { recursive: true });
    replaceFile(file, SLUICE_TYPES);
    if (project === undefined) replaceFile(written, `${JSON.stringify(PROJECT, null, 2)}\n`);
  });
  const settings = project === undefined ? ` and ${written}` : `; ${project} is unchanged and must include this file, with "checkJs": true`;
  session.note(`wrote ${file}${settings}; next: export default defineSource({ … })`);
}
