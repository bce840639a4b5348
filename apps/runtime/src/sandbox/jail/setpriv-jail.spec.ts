import { expect, it } from '@jest/globals';
import { findProgram } from './command-line.js';
import type { JailedProgram } from './jail.js';
import { SetprivJail } from './setpriv-jail.js';

const setpriv = findProgram('setpriv') ?? 'setpriv';
const program: JailedProgram = { kind: 'runner', exchangeDir: '/exchange', uid: 4711, heapMb: 64, args: [] };

// The filter denies that call, and setpriv(1) applies it first
it('names the signal of its parent’s death before the program starts that applies the filter', () => {
  const jail = new SetprivJail({ dir: '/root', seccompFile: '/seccomp.bpf', confines: false }, 'setpriv-lsm');
  const { args } = jail.command(program);
  const [signal, filter] = [args.indexOf('--pdeathsig'), args.indexOf('--seccomp-filter')];
  expect(signal).toBeGreaterThan(-1);
  expect(args.slice(signal, filter)).toContain(setpriv);
});
