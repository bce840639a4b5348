import { type InspectedComponent, inspectComponent } from '../components/inspect-component.js';
import { type ComponentFiles, ComponentRejected, type Sandbox } from '../sandbox/sandbox.js';
import { hasNeighbours } from './local-files.js';

/** `line`: of the file, or of the file that the message names. */
export type Checked = ({ ok: true; entry: string } & InspectedComponent) | { ok: false; error: string; line: number | null };

/** Validates a component like `POST /components`, in the same sandbox. */
export async function checkComponent(sandbox: Sandbox, { entry, files }: ComponentFiles, maxBytes: number): Promise<Checked> {
  try {
    const code = hasNeighbours(files[entry]!) ? await sandbox.bundle({ entry, files }) : files[entry]!;
    const bytes = Buffer.byteLength(code);
    if (bytes > maxBytes) return { ok: false, error: `The code has ${bytes} bytes; the limit is ${maxBytes}`, line: null };
    return { ok: true, entry, ...(await inspectComponent(sandbox, code)) };
  } catch (error) {
    if (!(error instanceof ComponentRejected)) throw error;
    return { ok: false, error: error.message, line: error.line ?? lineOfImport(error.message, files[entry]!) };
  }
}

/** An import statement fails before the file runs, and leaves no line behind. */
function lineOfImport(message: string, code: string): number | null {
  const [, name] = /The module "([^"]+)" is not available/.exec(message) ?? [];
  const line = name === undefined ? -1 : code.split('\n').findIndex((text) => text.includes(`"${name}"`) || text.includes(`'${name}'`));
  return line === -1 ? null : line + 1;
}
