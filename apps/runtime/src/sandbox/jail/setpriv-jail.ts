import { existsSync } from 'node:fs';
import { changeUser, lowerPriority, pathOf, processLimit, programCommand, programEnv, resourceLimits } from './command-line.js';
import type { Jail, JailCommand, JailedProgram } from './jail.js';
import type { JailRoot } from './jail-root.js';

const writeRights = 'read-file,read-dir,write-file,remove-file,remove-dir,make-dir,make-reg,refer,truncate';

/**
 * Uses no namespaces, for containers that do not permit them: no new privileges and, as `setpriv-lsm`, also Landlock for files and the seccomp filter.
 * `confine` applies them or, on a processor that it does not support, setpriv(1) of util-linux 2.41 or later. Plain `setpriv` is for machines on which
 * nothing else works, and only if the operator trusts all components.
 */
export class SetprivJail implements Jail {
  constructor(
    private readonly root: JailRoot,
    readonly rung: 'setpriv-lsm' | 'setpriv',
  ) {}

  command(program: JailedProgram): JailCommand {
    const isRoot = process.getuid?.() === 0;
    const [file, ...args] = [
      ...lowerPriority(),
      pathOf('prlimit'),
      ...resourceLimits(program.kind),
      ...(isRoot ? [processLimit] : []),
      ...(isRoot ? [...changeUser(program.uid), '--bounding-set=-all', '--inh-caps=-all'] : [pathOf('setpriv')]),
      ...['--pdeathsig', 'KILL', '--no-new-privs'],
      ...(this.rung === 'setpriv-lsm' ? this.securityModules(program) : ['--']),
      ...programCommand(program, { root: this.root.dir, exchange: program.exchangeDir, tmp: null }),
    ];
    const { exchangeDir, writable = [] } = program;
    return { file: file!, args, env: programEnv(program.kind), descriptorFiles: [], exchangePath: exchangeDir, writablePaths: writable };
  }

  private securityModules(program: JailedProgram): string[] {
    const { dir } = this.root;
    // npm gives rights and times to the files that it installs
    const isStrict = program.kind !== 'npm';
    const seccompFile = isStrict ? this.root.strictSeccompFile : this.root.seccompFile;
    // The loader and the libraries, because the programs' interpreter has an absolute path outside our root
    const execute = [`${dir}/lib`, `${dir}/lib64`, '/lib', '/lib64', '/usr/lib', `${dir}/bin/node`, `${dir}/bin/esbuild`].filter(
      existsSync,
    );
    const readsExchange = program.kind === 'bundler' || program.kind === 'npm';
    const read = [`${dir}/runner`, ...(readsExchange ? [program.exchangeDir] : [])];
    const { writable = [] } = program;
    if (this.root.confines)
      return [
        ...['--', `${dir}/bin/confine${isStrict ? '-strict' : ''}`],
        ...[...execute.map((path) => `x${path}`), ...read.map((path) => `r${path}`), ...writable.map((path) => `w${path}`)],
        '-',
      ];
    return [
      // setpriv(1) applies the filter before `--pdeathsig`, which the filter denies
      ...['--', pathOf('setpriv'), '--landlock-access', 'fs'],
      ...execute.flatMap((path) => ['--landlock-rule', `path-beneath:read-file,execute:${path}`]),
      ...read.flatMap((path) => ['--landlock-rule', `path-beneath:read-file,read-dir:${path}`]),
      ...writable.flatMap((path) => ['--landlock-rule', `path-beneath:${writeRights}:${path}`]),
      // Without a filter, the probe reaches the network, and the rung is refused
      ...(seccompFile ? ['--seccomp-filter', seccompFile] : []),
      '--',
    ];
  }
}
