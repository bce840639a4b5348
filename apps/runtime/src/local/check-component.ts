import { posix } from 'node:path';
import { relativeImports } from '#relative-imports';
import { type InspectedComponent, inspectComponent } from '../components/inspect-component.js';
import { type ComponentFiles, ComponentRejected, type Sandbox } from '../sandbox/sandbox.js';

/** `file`: the path of the file with this line from the component's folder; null: the component's file. */
export type Checked =
  | ({ ok: true; entry: string } & InspectedComponent)
  | { ok: false; error: string; file: string | null; line: number | null };

/** Validates a component like `POST /components`, in the same sandbox. */
export async function checkComponent(sandbox: Sandbox, { entry, files }: ComponentFiles, maxBytes: number): Promise<Checked> {
  try {
    const code = relativeImports(files[entry]!).length > 0 ? await sandbox.bundle({ entry, files }) : files[entry]!;
    const bytes = Buffer.byteLength(code);
    if (bytes > maxBytes) return { ok: false, error: `The code has ${bytes} bytes; the limit is ${maxBytes}`, file: null, line: null };
    return { ok: true, entry, ...(await inspectComponent(sandbox, code)) };
  } catch (error) {
    if (!(error instanceof ComponentRejected)) throw error;
    const { file = null, line } = error.line === null ? placeOfImport(error.message, files) : error;
    return {
      ok: false,
      error: error.message,
      file: file === null || file === entry ? null : posix.relative(posix.dirname(entry), file),
      line,
    };
  }
}

/** An import statement fails before the file runs, and leaves no line behind. */
function placeOfImport(message: string, files: ComponentFiles['files']): { file?: string; line: number | null } {
  const [, name] = /^The module "([^"]+)" /.exec(message) ?? [];
  if (name === undefined) return { line: null };
  for (const [file, code] of Object.entries(files)) {
    const at = code.split('\n').findIndex((text) => text.includes(`"${name}"`) || text.includes(`'${name}'`));
    if (at >= 0) return { file, line: at + 1 };
  }
  return { line: null };
}
