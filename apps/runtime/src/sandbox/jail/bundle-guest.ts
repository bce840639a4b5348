import { execFile } from 'node:child_process';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { bundlerFile } from './jail-programs.js';

const run = promisify(execFile);

/** The code of the jail's two programs of ours. */
export interface BundledGuest {
  runner: string;
  probe: string;
}

/** The guest in one file of CommonJS: its sources lie here as TypeScript or compiled, and it needs nothing of this repository then. */
export async function bundleGuest(): Promise<BundledGuest> {
  const bundle = async (entry: string) => {
    const source = join(import.meta.dirname, '..', 'guest', entry + extname(import.meta.filename));
    const { stdout } = await run(
      bundlerFile(),
      [source, '--bundle', '--platform=node', '--format=cjs', '--target=node24', '--log-level=error'],
      {
        maxBuffer: 16 << 20,
      },
    );
    return stdout;
  };
  const [runner, probe] = await Promise.all([bundle('main'), bundle('probe')]);
  return { runner, probe };
}
