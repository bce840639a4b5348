import { findProgram, lowerPriority, programCommand } from './command-line.js';
import type { Jail, JailCommand, JailedProgram } from './jail.js';
import type { JailRoot } from './jail-root.js';

/** No jail: only Node's permissions. For development on systems that have nothing else; components reach the network and this machine's ports. */
export class OpenJail implements Jail {
  readonly rung = 'none';

  constructor(private readonly root: JailRoot) {}

  command(program: JailedProgram): JailCommand {
    const setpriv = process.platform === 'linux' ? findProgram('setpriv') : null;
    const [file, ...args] = [
      ...lowerPriority(),
      // So that a component that loops does not outlive a parent that was killed
      ...(setpriv ? [setpriv, '--pdeathsig', 'KILL', '--'] : []),
      ...programCommand(program, { root: this.root.dir, exchange: program.exchangeDir, tmp: null }),
    ];
    const { exchangeDir, writable = [] } = program;
    return { file: file!, args, env: {}, descriptorFiles: [], exchangePath: exchangeDir, writablePaths: writable };
  }
}
