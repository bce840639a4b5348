import { execFile } from 'node:child_process';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { bundlerFile } from './jail-programs.js';

const run = promisify(execFile);

/** The programs that run inside the jail, bundled. */
export interface BundledGuest {
  runner: string;
  probe: string;
  npm: string;
  outline: string;
}

/** Bundles each program into one CommonJS file, from TypeScript sources or from compiled ones, so that it needs nothing else of this repository. */
export async function bundleGuest(): Promise<BundledGuest> {
  const bundle = async (entry: string) => {
    const folder = join(import.meta.dirname, '..', 'guest');
    const source = join(folder, entry + extname(import.meta.filename));
    const { stdout } = await run(
      bundlerFile(),
      [source, '--bundle', '--platform=node', '--format=cjs', '--target=node24', '--log-level=error'],
      // The bundle names its sources relative to the working directory: without a fixed one it would differ from start to start
      { cwd: folder, maxBuffer: 16 << 20 },
    );
    return stdout;
  };
  const [runner, probe, npm, outline] = await Promise.all(['main', 'probe', 'npm', 'outline'].map(bundle));
  return { runner: runner!, probe: probe!, npm: npm!, outline: outline! };
}
