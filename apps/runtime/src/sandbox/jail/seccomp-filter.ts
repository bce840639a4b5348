import { newestSystemCall, systemCalls, type SystemCall } from './system-calls.js';

/** A deny list, because Node uses many calls, which change with each version. */
const denied: Record<string, SystemCall[]> = {
  processes: ['fork', 'vfork'],
  servers: ['bind', 'listen', 'accept', 'accept4'],
  signals: ['kill', 'tkill', 'tgkill', 'rt_sigqueueinfo', 'rt_tgsigqueueinfo', 'pidfd_send_signal', 'pidfd_open', 'pidfd_getfd'],
  // Of any process of the same user: where we are not root, also of the runtime
  scheduling: [
    'setpriority',
    'ioprio_set',
    'sched_setscheduler',
    'sched_setparam',
    'sched_setattr',
    'sched_setaffinity',
    'migrate_pages',
    'move_pages',
  ],
  tracing: ['ptrace', 'process_vm_readv', 'process_vm_writev', 'kcmp', 'process_madvise', 'process_mrelease', 'perf_event_open', 'bpf'],
  namespaces: [
    'unshare',
    'setns',
    'mount',
    'umount2',
    'pivot_root',
    'chroot',
    'open_tree',
    'move_mount',
    'fsopen',
    'fsconfig',
    'fsmount',
    'fspick',
    'mount_setattr',
  ],
  rings: ['io_uring_setup', 'io_uring_enter', 'io_uring_register'],
  keys: ['add_key', 'request_key', 'keyctl'],
  files: [
    'name_to_handle_at',
    'open_by_handle_at',
    'mknod',
    'mknodat',
    'memfd_create',
    'memfd_secret',
    'execveat',
    'userfaultfd',
    'fanotify_init',
    'swapon',
    'swapoff',
  ],
  modules: ['init_module', 'finit_module', 'delete_module', 'kexec_load', 'kexec_file_load'],
  systemVIpc: [
    'shmget',
    'shmat',
    'shmctl',
    'shmdt',
    'semget',
    'semop',
    'semctl',
    'semtimedop',
    'msgget',
    'msgsnd',
    'msgrcv',
    'msgctl',
    'mq_open',
    'mq_unlink',
    'mq_timedsend',
    'mq_timedreceive',
    'mq_notify',
    'mq_getsetattr',
  ],
  machine: [
    'personality',
    'acct',
    'settimeofday',
    'reboot',
    'sethostname',
    'setdomainname',
    'iopl',
    'ioperm',
    'clock_settime',
    'adjtimex',
    'clock_adjtime',
    'setsid',
    'setpgid',
    'vmsplice',
    'modify_ldt',
    'timer_create',
  ],
};

/** Landlock does not restrict these. They concern every file of the user, and the names in every folder. */
const deniedOnSharedFiles: SystemCall[] = [
  'chmod',
  'fchmod',
  'fchmodat',
  'fchmodat2',
  'chown',
  'lchown',
  'fchown',
  'fchownat',
  'setxattr',
  'lsetxattr',
  'fsetxattr',
  'removexattr',
  'lremovexattr',
  'fremovexattr',
  'utime',
  'utimes',
  'futimesat',
  'utimensat',
  'inotify_add_watch',
];

/** AUDIT_ARCH_* of linux/audit.h, and the column of the table. */
const processors: Partial<Record<NodeJS.Architecture, { audit: number; column: 0 | 1 }>> = {
  x64: { audit: 0xc000003e, column: 0 },
  arm64: { audit: 0xc00000b7, column: 1 },
};

const verdict = { allow: 0x7fff0000, eperm: 0x00050001, enosys: 0x00050026, kill: 0x80000000 };
const code = { load: 0x20, ifEqual: 0x15, ifAtLeast: 0x35, ifAnyBit: 0x45, verdict: 0x06 };
const offset = { call: 0, arch: 4, firstArgument: 16, secondArgument: 24 };
const unixSocket = 1;
const cloneThread = 0x10000;
const pushToTerminal = 0x5412;
/** The process that receives the signals of a descriptor, and which signal it is: F_SETOWN, F_SETSIG, F_SETOWN_EX, and two more names of the first. */
const signalsOfDescriptor = { fcntl: [8, 10, 15], ioctl: [0x8901, 0x8902] };
const setLease = 1024;
const setSignalOfParentsDeath = 1;

/**
 * A BPF program that denies system calls to a runner, for `bwrap --seccomp` and `setpriv --seccomp-filter`; null: this processor is not supported.
 * On arm64, an earlier list was tested under full emulation of Linux 6.12: each denied call failed with EPERM, and Node worked in every safe rung.
 * @param files `shared`: the program sees the files of this machine, and writes to none
 */
export function seccompFilter(arch: NodeJS.Architecture = process.arch, files: 'own' | 'shared' = 'own'): Buffer | null {
  const processor = processors[arch];
  if (!processor) return null;

  const program: [code: number, ifTrue: number, ifFalse: number, value: number][] = [];
  const load = (from: number) => program.push([code.load, 0, 0, from]);
  const endWith = (value: number) => program.push([code.verdict, 0, 0, value]);
  const forCall = (name: SystemCall, body: () => void) => {
    const number = systemCalls[name][processor.column];
    if (number === null) return;
    const jump = program.push([code.ifEqual, 0, 0, number]) - 1;
    body();
    program[jump]![2] = program.length - jump - 1;
  };

  const allowOnly = (argument: number, value: number): void => {
    load(argument);
    program.push([code.ifEqual, 0, 1, value]);
    endWith(verdict.allow);
    endWith(verdict.eperm);
  };
  const deny = (argument: number, ...values: number[]): void => {
    load(argument);
    // Over the comparisons that follow, and the instruction that allows the others
    values.forEach((value, index) => program.push([code.ifEqual, values.length - index, 0, value]));
    endWith(verdict.allow);
    endWith(verdict.eperm);
  };

  load(offset.arch);
  program.push([code.ifEqual, 1, 0, processor.audit]);
  endWith(verdict.kill);
  load(offset.call);
  // Calls that are newer than the table. On x64 this includes the calls of the x32 table, which have much higher numbers
  program.push([code.ifAtLeast, 0, 1, newestSystemCall + 1]);
  endWith(verdict.enosys);
  const shared = files === 'shared';
  for (const call of [...Object.values(denied).flat(), ...(shared ? deniedOnSharedFiles : [])]) forCall(call, () => endWith(verdict.eperm));
  // A filter cannot read its flags, which are behind a pointer. Without it, glibc falls back to clone.
  forCall('clone3', () => endWith(verdict.enosys));
  // Another family is a network, or a module that the kernel would load
  forCall('socket', () => allowOnly(offset.firstArgument, unixSocket));
  forCall('socketpair', () => allowOnly(offset.firstArgument, unixSocket));
  // Of another process. 0: the caller, which may lower its own limits
  forCall('prlimit64', () => allowOnly(offset.firstArgument, 0));
  forCall('clone', () => {
    load(offset.firstArgument);
    program.push([code.ifAnyBit, 0, 1, cloneThread]);
    endWith(verdict.allow);
    endWith(verdict.eperm);
  });
  forCall('ioctl', () => deny(offset.secondArgument, pushToTerminal, ...signalsOfDescriptor.ioctl));
  forCall('fcntl', () => deny(offset.secondArgument, ...signalsOfDescriptor.fcntl, ...(shared ? [setLease] : [])));
  // The launchers set it before the filter. Without it, code would outlive a runtime that was killed
  forCall('prctl', () => deny(offset.firstArgument, setSignalOfParentsDeath));
  endWith(verdict.allow);

  const bytes = Buffer.alloc(program.length * 8);
  program.forEach(([operation, ifTrue, ifFalse, value], index) => {
    bytes.writeUInt16LE(operation, index * 8);
    bytes.writeUInt8(ifTrue, index * 8 + 2);
    bytes.writeUInt8(ifFalse, index * 8 + 3);
    bytes.writeUInt32LE(value >>> 0, index * 8 + 4);
  });
  return bytes;
}
