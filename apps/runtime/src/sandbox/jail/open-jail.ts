import { findProgram, lowerPriority, programCommand, programEnv } from './command-line.js';
import type { Jail, JailCommand, JailedProgram } from './jail.js';
import type { JailRoot } from './jail-root.js';

/** No jail, only Node's permission model. For development on systems without any jail: components reach the network and the ports of this machine. */
export class OpenJail implements Jail {
  readonly rung = 'none';

  constructor(private readonly root: JailRoot) {}

  command(program: JailedProgram): JailCommand {
    const setpriv = process.platform === 'linux' ? findProgram('setpriv') : null;
    const [file, ...args] = [
      ...lowerPriority(),
      // Otherwise a component in an endless loop would outlive a parent that was killed
      ...(setpriv ? [setpriv, '--pdeathsig', 'KILL', '--'] : []),
      ...programCommand(program, { root: this.root.dir, exchange: program.exchangeDir, tmp: null }),
    ];
    const { exchangeDir, writable = [] } = program;
    return { file: file!, args, env: programEnv(program.kind), descriptorFiles: [], exchangePath: exchangeDir, writablePaths: writable };
  }
}
