import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { JailedProgram } from './jail.js';
import { niceness } from './process-priority.js';

/** The paths of a program's files inside the jail. */
export interface View {
  root: string;
  exchange: string;
  /** A writable folder; null: there is none */
  tmp: string | null;
}

/** The command line of the program, without that of the jail. */
export function programCommand(program: JailedProgram, view: View): string[] {
  const runner = `${view.root}/runner`;
  switch (program.kind) {
    case 'bundler':
      return [`${view.root}/bin/esbuild`, ...program.args];
    case 'probe':
      // Without Node's permission model, because the probe tests the jail alone
      return [`${view.root}/bin/node`, ...nodeFlags(program, view), `${runner}/probe.cjs`, ...program.args];
    case 'npm':
      // Without Node's own permissions: npm runs none of the code that it installs, and needs files that they would close
      return [`${view.root}/bin/node`, ...nodeFlags(program, view), `${runner}/npm.cjs`, `${runner}/npm`, ...program.args];
    case 'runner':
      return [`${view.root}/bin/node`, ...nodeFlags(program, view), ...permissionFlags(view), `${runner}/runner.cjs`, ...program.args];
  }
}

function nodeFlags({ heapMb }: JailedProgram, view: View): string[] {
  return [
    `--max-old-space-size=${heapMb}`,
    '--max-semi-space-size=8',
    '--v8-pool-size=1',
    '--no-addons',
    // Otherwise another process could open the inspector by a signal
    '--disable-sigusr1',
    '--no-network-family-autoselection',
    '--disable-warning=ExperimentalWarning',
    '--disable-warning=DEP0111',
    // V8's checks depend on its flags: with this option, `v8.setFlagsFromString` ends the process
    '--freeze-flags-after-init',
    `--openssl-config=${view.root}/runner/openssl.cnf`,
  ];
}

/** A second layer inside every jail: no workers, child processes or bindings, and no files except these. */
function permissionFlags(view: View): string[] {
  // The guest uses Node's internals once, to close them (guest/built-ins.ts)
  const flags = ['--permission', '--expose-internals', `--allow-fs-read=${view.root}/runner/`];
  if (view.tmp !== null) flags.push(`--allow-fs-read=${view.tmp}/`, `--allow-fs-write=${view.tmp}/`);
  return flags;
}

export const mostOpenFiles = 1024;

/** The memory of the bundler, in MB: enough for the largest bundle, of 12 MB. esbuild collects garbage only if Go has a limit. */
const bundlerMb = { data: 500, heap: 300 };

/** The whole environment of a program. */
export const programEnv = (kind: JailedProgram['kind']): Record<string, string> =>
  kind === 'bundler' ? { GOMEMLIMIT: `${bundlerMb.heap}MiB` } : {};

/**
 * Options of prlimit(1). The data limit includes about 525 MB that V8 reserves for compiled code, so 800 MB leave about 275 MB to use. The kernel
 * enforces it, because a check of the resident memory every 100 ms can come too late.
 */
export const resourceLimits = (kind: JailedProgram['kind']): string[] => [
  `--nofile=${mostOpenFiles}`,
  '--core=0',
  // npm writes the archives of packages
  `--fsize=${kind === 'npm' ? 64 << 20 : 16 << 20}`,
  `--data=${kind === 'bundler' ? bundlerMb.data : 800}000000`,
  '--memlock=0',
  '--msgqueue=0',
  '--rttime=0:0',
  '--nice=0:0',
];

/** Used only where it counts the processes of this jail alone: in a user namespace, or as a separate user. */
export const processLimit = '--nproc=24';

/** The mount point of the nth writable folder in a jail with a separate root directory. */
export const writablePath = (index: number): string => `/writable/${index}`;

export const tmpBytes = 16 << 20;

/** When the machine is short of CPU, what runs in a jail gets less of it than the services. On an idle machine it makes no difference. */
export function lowerPriority(): string[] {
  const nice = findProgram('nice');
  return nice ? [nice, '-n', String(niceness.ordinary)] : [];
}

/** If we are root, every rung first changes to a user that no other process has. An ordinary user is kept. */
export function changeUser(uid: number): string[] {
  return process.getuid?.() === 0 ? [pathOf('setpriv'), `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'] : [];
}

// Services often start with a short PATH; setpriv and prlimit may be in any of these folders
const usual = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** The absolute path of a program, or null. It is absolute because jailed processes start with an empty environment. */
export function findProgram(name: string): string | null {
  for (const dir of [...(process.env.PATH ?? '').split(delimiter), ...usual]) {
    if (!dir.startsWith('/')) continue;
    const file = join(dir, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      continue;
    }
  }
  return null;
}

/** The path of a program. Without one, its name: the error of the start then shows which program is missing. */
export const pathOf = (name: string): string => findProgram(name) ?? name;
