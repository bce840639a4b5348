import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { JailedProgram } from './jail.js';

/** Where a program's files are, as it sees them. */
export interface View {
  root: string;
  exchange: string;
  /** A folder that it may write to; null: none */
  tmp: string | null;
}

/** The program itself, without what is around it. */
export function programCommand(program: JailedProgram, view: View): string[] {
  const runner = `${view.root}/runner`;
  switch (program.kind) {
    case 'bundler':
      return [`${view.root}/bin/esbuild`, ...program.args];
    case 'probe':
      // Without Node's own permissions: the probe is there to see what the jail keeps back
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
    // Another process could otherwise open this one's inspector with a signal
    '--disable-sigusr1',
    '--no-network-family-autoselection',
    '--disable-warning=ExperimentalWarning',
    '--disable-warning=DEP0111',
    // V8's flags decide what its checks are worth: `v8.setFlagsFromString` ends the process
    '--freeze-flags-after-init',
    `--openssl-config=${view.root}/runner/openssl.cnf`,
  ];
}

/** The second layer, inside whatever jail there is: no workers, no child processes, no bindings, no files but these. */
function permissionFlags(view: View): string[] {
  // The guest needs Node's internals once, to close them (guest/built-ins.ts)
  const flags = ['--permission', '--expose-internals', `--allow-fs-read=${view.root}/runner/`];
  if (view.tmp !== null) flags.push(`--allow-fs-read=${view.tmp}/`, `--allow-fs-write=${view.tmp}/`);
  return flags;
}

/**
 * Options of prlimit(1). The data limit counts what V8 reserves for compiled code (some 525 MB of it): 800 MB leave about 275 MB to use, and the
 * kernel keeps to that where watching the resident memory every 100 ms comes too late.
 */
export const resourceLimits = (kind: JailedProgram['kind']): string[] => [
  '--nofile=1024',
  '--core=0',
  // npm writes the archives of packages
  `--fsize=${kind === 'npm' ? 64 << 20 : 16 << 20}`,
  '--data=800000000',
  '--memlock=0',
  '--msgqueue=0',
  '--rttime=0:0',
  '--nice=0:0',
];

/** Only if it counts the processes of this jail alone: with a separate user namespace or a separate user. */
export const processLimit = '--nproc=24';

/** The mount point of the nth writable folder in a jail with a separate root directory. */
export const writablePath = (index: number): string => `/writable/${index}`;

export const tmpBytes = 16 << 20;

/**
 * Where the machine is short of CPU, components get a third of what the services get: a hostile one that burns all it may should not be felt in
 * deliveries. While nobody else wants the CPU it makes no difference.
 */
export function lowerPriority(): string[] {
  const nice = findProgram('nice');
  return nice ? [nice, '-n', '5'] : [];
}

/** As root, every rung first changes to a user that no other process has; an ordinary user is not changed. */
export function changeUser(uid: number): string[] {
  return process.getuid?.() === 0 ? [findProgram('setpriv') ?? 'setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'] : [];
}

// Services often start with a short PATH; setpriv and prlimit may be in either place
const usual = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** The absolute path of a program, or null. Absolute, so that a process can be started with an empty environment. */
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
