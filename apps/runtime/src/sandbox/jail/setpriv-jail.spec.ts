import { expect, it } from '@jest/globals';
import { findProgram } from './command-line.js';
import type { JailedProgram } from './jail.js';
import { SetprivJail } from './setpriv-jail.js';

const setpriv = findProgram('setpriv') ?? 'setpriv';
const program: JailedProgram = { kind: 'runner', exchangeDir: '/exchange', uid: 4711, heapMb: 64, args: [] };

const root = { dir: '/root', seccompFile: '/seccomp.bpf', strictSeccompFile: '/seccomp-strict.bpf', confines: false };
const argsOf = (kind: JailedProgram['kind'], confines = false) =>
  new SetprivJail({ ...root, confines }, 'setpriv-lsm').command({ ...program, kind }).args;

// The filter denies that call, and setpriv(1) applies it first
it('names the signal of its parent’s death before the program starts that applies the filter', () => {
  const args = argsOf('runner');
  const [signal, filter] = [args.indexOf('--pdeathsig'), args.indexOf('--seccomp-filter')];
  expect(signal).toBeGreaterThan(-1);
  expect(args.slice(signal, filter)).toContain(setpriv);
});

it.each([
  ['runner', '/root/bin/confine-strict', '/seccomp-strict.bpf'],
  // installs packages, whose files get rights and times
  ['npm', '/root/bin/confine', '/seccomp.bpf'],
] as const)('applies to the %s the filter that fits it', (kind, confine, filter) => {
  expect(argsOf(kind, true)).toContain(confine);
  expect(argsOf(kind)).toContain(filter);
});
