import { describe, expect, it } from '@jest/globals';
import { seccompFilter } from './seccomp-filter.js';

const verdicts: Record<number, string> = { 0x7fff0000: 'allowed', 0x00050001: 'EPERM', 0x00050026: 'ENOSYS', 0x80000000: 'killed' };
const audit = { x64: 0xc000003e, arm64: 0xc00000b7 };

/** The kernel's verdict: interprets the few BPF instructions that the filter uses. */
function judge(filter: Buffer, call: number, args: number[] = [], arch: number = audit.x64): string {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call, 0);
  data.writeUInt32LE(arch, 4);
  args.forEach((arg, index) => data.writeUInt32LE(arg >>> 0, 16 + index * 8));
  let accumulator = 0;
  for (let at = 0; at < filter.length / 8; at++) {
    const [code, ifTrue, ifFalse, value] = [
      filter.readUInt16LE(at * 8),
      filter[at * 8 + 2]!,
      filter[at * 8 + 3]!,
      filter.readUInt32LE(at * 8 + 4),
    ];
    if (code === 0x06) return verdicts[value] ?? String(value);
    if (code === 0x20) accumulator = data.readUInt32LE(value);
    else {
      const holds = code === 0x15 ? accumulator === value : code === 0x35 ? accumulator >= value : (accumulator & value) !== 0;
      at += holds ? ifTrue : ifFalse;
    }
  }
  return 'fell off the end';
}

describe('the seccomp filter', () => {
  const x64 = seccompFilter('x64')!;
  const arm64 = seccompFilter('arm64')!;
  const [unix, inet, netlink, tipc] = [1, 2, 16, 30];
  const [thread, newUser] = [0x3d0f00, 0x10000000];

  it.each<[string, number, number[], string]>([
    ['read', 0, [], 'allowed'],
    ['mmap', 9, [], 'allowed'],
    ['connect', 42, [], 'allowed'],
    ['execve, which the jail itself needs', 59, [], 'allowed'],
    ['socket(AF_UNIX)', 41, [unix], 'allowed'],
    ['socket(AF_INET)', 41, [inet], 'EPERM'],
    ['socket(AF_NETLINK)', 41, [netlink], 'EPERM'],
    ['socketpair(AF_UNIX)', 53, [unix], 'allowed'],
    ['socketpair(AF_INET)', 53, [inet], 'EPERM'],
    ['socketpair(AF_TIPC)', 53, [tipc], 'EPERM'],
    ['fanotify_init', 300, [], 'EPERM'],
    ['timer_create', 222, [], 'EPERM'],
    ['clone of a thread', 56, [thread], 'allowed'],
    ['clone of a process', 56, [17], 'EPERM'],
    ['clone of a user namespace', 56, [newUser], 'EPERM'],
    ['clone3', 435, [], 'ENOSYS'],
    ['modify_ldt', 154, [], 'EPERM'],
    ['fork', 57, [], 'EPERM'],
    ['vfork', 58, [], 'EPERM'],
    ['bind', 49, [], 'EPERM'],
    ['listen', 50, [], 'EPERM'],
    ['kill', 62, [], 'EPERM'],
    ['setpriority', 141, [], 'EPERM'],
    ['sched_setaffinity', 203, [], 'EPERM'],
    ['prlimit64 of the process itself', 302, [0], 'allowed'],
    ['prlimit64 of another process', 302, [4711], 'EPERM'],
    ['ptrace', 101, [], 'EPERM'],
    ['mount', 165, [], 'EPERM'],
    ['unshare', 272, [], 'EPERM'],
    ['bpf', 321, [], 'EPERM'],
    ['io_uring_setup', 425, [], 'EPERM'],
    ['process_vm_readv', 310, [], 'EPERM'],
    ['memfd_create', 319, [], 'EPERM'],
    ['memfd_secret', 447, [], 'EPERM'],
    ['prctl(PR_SET_PDEATHSIG)', 157, [1, 0], 'EPERM'],
    ['prctl(PR_SET_NAME)', 157, [15], 'allowed'],
    ['fcntl(F_SETFL)', 72, [3, 4], 'allowed'],
    ['fcntl(F_SETOWN)', 72, [3, 8], 'EPERM'],
    ['fcntl(F_SETSIG)', 72, [3, 10], 'EPERM'],
    ['fcntl(F_SETOWN_EX)', 72, [3, 15], 'EPERM'],
    ['ioctl(TIOCSTI)', 16, [0, 0x5412], 'EPERM'],
    ['ioctl(FIOSETOWN)', 16, [0, 0x8901], 'EPERM'],
    ['ioctl(SIOCSPGRP)', 16, [0, 0x8902], 'EPERM'],
    ['ioctl(FIONBIO)', 16, [0, 0x5421], 'allowed'],
    ['a call of tomorrow', 500, [], 'ENOSYS'],
    ['a call of the x32 table', 0x40000000, [], 'ENOSYS'],
  ])('on x64: %s', (_, call, args, verdict) => {
    expect(judge(x64, call, args)).toBe(verdict);
  });

  it.each<[string, number, number[], string]>([
    ['read', 63, [], 'allowed'],
    ['mmap', 222, [], 'allowed'],
    ['connect', 203, [], 'allowed'],
    ['execve, which the jail itself needs', 221, [], 'allowed'],
    ['socket(AF_UNIX)', 198, [unix], 'allowed'],
    ['socket(AF_INET)', 198, [inet], 'EPERM'],
    ['socket(AF_NETLINK)', 198, [netlink], 'EPERM'],
    ['socketpair(AF_UNIX)', 199, [unix], 'allowed'],
    ['socketpair(AF_INET)', 199, [inet], 'EPERM'],
    ['socketpair(AF_TIPC)', 199, [tipc], 'EPERM'],
    ['fanotify_init', 262, [], 'EPERM'],
    ['timer_create', 107, [], 'EPERM'],
    ['clone of a thread', 220, [thread], 'allowed'],
    ['clone of a process', 220, [17], 'EPERM'],
    ['clone of a user namespace', 220, [newUser], 'EPERM'],
    ['clone3', 435, [], 'ENOSYS'],
    ['bind', 200, [], 'EPERM'],
    ['listen', 201, [], 'EPERM'],
    ['kill', 129, [], 'EPERM'],
    ['setpriority', 140, [], 'EPERM'],
    ['sched_setaffinity', 122, [], 'EPERM'],
    ['prlimit64 of the process itself', 261, [0], 'allowed'],
    ['prlimit64 of another process', 261, [4711], 'EPERM'],
    ['ptrace', 117, [], 'EPERM'],
    ['mount', 40, [], 'EPERM'],
    ['unshare', 97, [], 'EPERM'],
    ['bpf', 280, [], 'EPERM'],
    ['io_uring_setup', 425, [], 'EPERM'],
    ['process_vm_readv', 270, [], 'EPERM'],
    ['memfd_create', 279, [], 'EPERM'],
    ['memfd_secret', 447, [], 'EPERM'],
    ['prctl(PR_SET_PDEATHSIG)', 167, [1, 0], 'EPERM'],
    ['prctl(PR_SET_NAME)', 167, [15], 'allowed'],
    ['fcntl(F_SETFL)', 25, [3, 4], 'allowed'],
    ['fcntl(F_SETOWN)', 25, [3, 8], 'EPERM'],
    ['fcntl(F_SETSIG)', 25, [3, 10], 'EPERM'],
    ['fcntl(F_SETOWN_EX)', 25, [3, 15], 'EPERM'],
    ['ioctl(TIOCSTI)', 29, [0, 0x5412], 'EPERM'],
    ['ioctl(FIOSETOWN)', 29, [0, 0x8901], 'EPERM'],
    ['ioctl(SIOCSPGRP)', 29, [0, 0x8902], 'EPERM'],
    ['ioctl(FIONBIO)', 29, [0, 0x5421], 'allowed'],
    ['a call of tomorrow', 500, [], 'ENOSYS'],
  ])('on arm64: %s', (_, call, args, verdict) => {
    expect(judge(arm64, call, args, audit.arm64)).toBe(verdict);
  });

  it.each<[string, number | null, number | null, number[]]>([
    ['chmod', 90, null, []],
    ['fchmod', 91, 52, []],
    ['fchmodat', 268, 53, []],
    ['fchmodat2', 452, 452, []],
    ['chown', 92, null, []],
    ['lchown', 94, null, []],
    ['fchown', 93, 55, []],
    ['fchownat', 260, 54, []],
    ['setxattr', 188, 5, []],
    ['lsetxattr', 189, 6, []],
    ['fsetxattr', 190, 7, []],
    ['removexattr', 197, 14, []],
    ['lremovexattr', 198, 15, []],
    ['fremovexattr', 199, 16, []],
    ['utime', 132, null, []],
    ['utimes', 235, null, []],
    ['futimesat', 261, null, []],
    ['utimensat', 280, 88, []],
    ['inotify_add_watch', 254, 27, []],
    ['fcntl(F_SETLEASE)', 72, 25, [3, 1024]],
  ])('denies only where files are shared: %s', (_, onX64, onArm64, args) => {
    for (const arch of ['x64', 'arm64'] as const) {
      const call = arch === 'x64' ? onX64 : onArm64;
      if (call === null) continue;
      expect(judge(seccompFilter(arch)!, call, args, audit[arch])).toBe('allowed');
      expect(judge(seccompFilter(arch, 'shared')!, call, args, audit[arch])).toBe('EPERM');
    }
  });

  it.each(['x64', 'arm64'] as const)('denies everything else where files are shared, too (%s)', (arch) => {
    const [own, shared] = [seccompFilter(arch)!, seccompFilter(arch, 'shared')!];
    for (let call = 0; call < 500; call++) {
      const verdict = judge(own, call, [0, 8], audit[arch]);
      if (verdict !== 'allowed') expect([call, judge(shared, call, [0, 8], audit[arch])]).toEqual([call, verdict]);
    }
  });

  it('kills a process that calls by another processor’s table', () => {
    expect(judge(x64, 0, [], 0x40000003)).toBe('killed');
  });

  it('is not there for a processor that nobody has looked up', () => {
    expect(seccompFilter('riscv64')).toBeNull();
  });
});
