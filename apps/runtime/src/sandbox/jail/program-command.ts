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
