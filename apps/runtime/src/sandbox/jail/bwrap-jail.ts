import { changeUser, lowerPriority, pathOf, programCommand, programEnv, resourceLimits, tmpBytes, writablePath } from './command-line.js';
import type { Jail, JailCommand, JailedProgram } from './jail.js';
import type { JailRoot } from './jail-root.js';

/** bubblewrap: every namespace, an empty root, no capabilities, a seccomp filter. */
export class BwrapJail implements Jail {
  readonly rung = 'bwrap';

  constructor(private readonly root: JailRoot) {}

  command(program: JailedProgram): JailCommand {
    const exchangePath = '/exchange';
    const { writable = [] } = program;
    const [file, ...args] = [
      // bwrap must run as an ordinary user: started by root, it would map the jail's user to root outside
      ...changeUser(program.uid),
      ...lowerPriority(),
      pathOf('prlimit'),
      ...resourceLimits(program.kind),
      pathOf('bwrap'),
      '--unshare-all',
      '--unshare-user',
      ...['--cap-drop', 'ALL'],
      '--as-pid-1',
      '--die-with-parent',
      '--new-session',
      ...['--hostname', 'runner'],
      '--clearenv',
      ...Object.entries(programEnv(program.kind)).flatMap(([name, value]) => ['--setenv', name, value]),
      ...['--ro-bind', this.root.dir, '/'],
      ...['--size', String(tmpBytes), '--tmpfs', '/tmp'],
      ...['--ro-bind', program.exchangeDir, exchangePath],
      ...writable.flatMap((dir, index) => ['--bind', dir, writablePath(index)]),
      ...['--chdir', '/tmp'],
      ...(this.root.seccompFile ? ['--seccomp', '4'] : []),
      '--',
      ...programCommand(program, { root: '', exchange: exchangePath, tmp: '/tmp' }),
    ];
    return {
      file: file!,
      args,
      env: {},
      descriptorFiles: this.root.seccompFile ? [this.root.seccompFile] : [],
      exchangePath,
      writablePaths: writable.map((_, index) => writablePath(index)),
    };
  }
}
