import {
  changeUser,
  lowerPriority,
  pathOf,
  processLimit,
  programCommand,
  programEnv,
  resourceLimits,
  tmpBytes,
  writablePath,
} from './command-line.js';
import type { Jail, JailCommand, JailedProgram } from './jail.js';
import type { JailRoot } from './jail-root.js';

// $0 the root, $1 the exchange folder, then each writable folder and its mount point, `--`, the environment, `--`, and the program. The root is bound onto itself to become a mount, which alone can be made read-only.
const enter = [
  'hostname runner 2>/dev/null || :',
  'mount --bind "$0" "$0"',
  `mount -t tmpfs -o size=${tmpBytes},nosuid,nodev,noexec tmpfs "$0/tmp"`,
  'mount --bind "$1" "$0/exchange"',
  // A separate mount, which the remount of the root does not make read-only
  'mount -o remount,bind,ro,nosuid,nodev,noexec "$0/exchange"',
  'shift',
  'while [ "$1" != -- ]; do mount --bind "$1" "$0$2"; mount -o remount,bind,nosuid,nodev,noexec "$0$2"; shift 2; done',
  'mount -o remount,bind,ro,nosuid,nodev "$0"',
  'root=$0',
  'shift',
  'environment=',
  'while [ "$1" != -- ]; do environment="$environment $1"; shift; done',
  'shift',
  'exec env -i $environment unshare --root="$root" --wd=/tmp /bin/setpriv --no-new-privs --bounding-set=-all --inh-caps=-all ' +
    '--securebits=+noroot,+noroot_locked,+no_setuid_fixup,+no_setuid_fixup_locked ' +
    `/bin/prlimit ${processLimit} "$@"`,
].join('\n');

/** util-linux alone, with the same namespaces as bwrap. On a processor that `confine` does not support, it has no seccomp filter. */
export class UnshareJail implements Jail {
  readonly rung = 'unshare';

  constructor(private readonly root: JailRoot) {}

  command(program: JailedProgram): JailCommand {
    const exchangePath = '/exchange';
    const { writable = [] } = program;
    const [file, ...args] = [
      ...changeUser(program.uid),
      ...lowerPriority(),
      pathOf('prlimit'),
      ...resourceLimits(program.kind),
      // unshare ends when we do, and its child with it. Otherwise a process in an endless loop would outlive a parent that was killed
      pathOf('setpriv'),
      ...['--pdeathsig', 'KILL'],
      pathOf('unshare'),
      ...['--user', '--map-root-user', '--net', '--pid', '--mount', '--ipc', '--uts', '--cgroup', '--fork', '--kill-child=SIGKILL'],
      '--',
      ...['/bin/sh', '-ec', enter, this.root.dir, program.exchangeDir],
      ...writable.flatMap((dir, index) => [dir, writablePath(index)]),
      '--',
      ...Object.entries(programEnv(program.kind)).map(([name, value]) => `${name}=${value}`),
      '--',
      ...(this.root.confines ? ['/bin/confine', '-'] : []),
      ...programCommand(program, { root: '', exchange: exchangePath, tmp: '/tmp' }),
    ];
    return {
      file: file!,
      args,
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
      descriptorFiles: [],
      exchangePath,
      writablePaths: writable.map((_, index) => writablePath(index)),
    };
  }
}
