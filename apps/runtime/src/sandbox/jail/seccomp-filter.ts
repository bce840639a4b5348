/**
 * The system calls that a runner does not get, as a BPF program for `bwrap --seccomp` and `setpriv --seccomp-filter`. A deny list: Node uses
 * too many calls, and others with each version, for a list of what is allowed. The arm64 numbers come from the kernel's table and have not run.
 */
interface CallNumbers {
  arch: number;
  socket: number;
  clone: number;
  clone3: number;
  ioctl: number;
  newest: number;
  denied: Record<string, number[]>;
}

const numbers: Partial<Record<NodeJS.Architecture, CallNumbers>> = {
  x64: {
    arch: 0xc000003e,
    socket: 41,
    clone: 56,
    clone3: 435,
    ioctl: 16,
    newest: 462,
    denied: {
      processes: [57, 58],
      servers: [49, 50, 43, 288],
      signals: [62, 200, 234, 129, 297, 424, 434, 438],
      tracing: [101, 310, 311, 312, 440, 448, 298, 321],
      namespaces: [272, 308, 165, 166, 155, 161, 428, 429, 430, 431, 432, 433, 442],
      rings: [425, 426, 427],
      keys: [248, 249, 250],
      files: [303, 304, 133, 259, 319, 322, 323, 167, 168],
      modules: [175, 313, 176, 246, 320],
      systemVIpc: [29, 30, 31, 64, 65, 66, 67, 68, 69, 70, 71, 220, 240, 241, 242, 243, 244, 245],
      machine: [135, 163, 164, 169, 170, 171, 172, 173, 227, 159, 305, 112, 109, 278],
    },
  },
  arm64: {
    arch: 0xc00000b7,
    socket: 198,
    clone: 220,
    clone3: 435,
    ioctl: 29,
    newest: 462,
    denied: {
      processes: [],
      servers: [200, 201, 202, 242],
      signals: [129, 130, 131, 138, 240, 424, 434, 438],
      tracing: [117, 270, 271, 272, 440, 448, 241, 280],
      namespaces: [97, 268, 40, 39, 41, 51, 428, 429, 430, 431, 432, 433, 442],
      rings: [425, 426, 427],
      keys: [217, 218, 219],
      files: [264, 265, 33, 279, 281, 282, 224, 225],
      modules: [105, 273, 106, 104, 294],
      systemVIpc: [194, 195, 196, 197, 190, 191, 192, 193, 186, 187, 188, 189, 180, 181, 182, 183, 184, 185],
      machine: [92, 142, 89, 161, 162, 170, 112, 171, 266, 157, 154, 75],
    },
  },
};

const verdict = { allow: 0x7fff0000, eperm: 0x00050001, enosys: 0x00050026, kill: 0x80000000 };
const code = { load: 0x20, ifEqual: 0x15, ifAtLeast: 0x35, ifAnyBit: 0x45, verdict: 0x06 };
const offset = { call: 0, arch: 4, firstArgument: 16, secondArgument: 24 };
const unixSocket = 1;
const cloneThread = 0x10000;
const pushToTerminal = 0x5412;

/** null: there is no table for this processor. */
export function seccompFilter(arch: NodeJS.Architecture = process.arch): Buffer | null {
  const calls = numbers[arch];
  if (!calls) return null;

  const program: [code: number, ifTrue: number, ifFalse: number, value: number][] = [];
  const load = (from: number) => program.push([code.load, 0, 0, from]);
  const answer = (value: number) => program.push([code.verdict, 0, 0, value]);
  const forCall = (call: number, body: () => void) => {
    const jump = program.push([code.ifEqual, 0, 0, call]) - 1;
    body();
    program[jump]![2] = program.length - jump - 1;
  };

  load(offset.arch);
  program.push([code.ifEqual, 1, 0, calls.arch]);
  answer(verdict.kill);
  load(offset.call);
  // Calls that are newer than this list, and on x64 those of the x32 table, which begin far above
  program.push([code.ifAtLeast, 0, 1, calls.newest + 1]);
  answer(verdict.enosys);
  for (const call of Object.values(calls.denied).flat()) forCall(call, () => answer(verdict.eperm));
  // Its flags are behind a pointer, where a filter cannot look: not being there, glibc falls back to clone
  forCall(calls.clone3, () => answer(verdict.enosys));
  forCall(calls.socket, () => {
    load(offset.firstArgument);
    program.push([code.ifEqual, 0, 1, unixSocket]);
    answer(verdict.allow);
    answer(verdict.eperm);
  });
  forCall(calls.clone, () => {
    load(offset.firstArgument);
    program.push([code.ifAnyBit, 0, 1, cloneThread]);
    answer(verdict.allow);
    answer(verdict.eperm);
  });
  forCall(calls.ioctl, () => {
    load(offset.secondArgument);
    program.push([code.ifEqual, 0, 1, pushToTerminal]);
    answer(verdict.eperm);
    answer(verdict.allow);
  });
  answer(verdict.allow);

  const bytes = Buffer.alloc(program.length * 8);
  program.forEach(([operation, ifTrue, ifFalse, value], index) => {
    bytes.writeUInt16LE(operation, index * 8);
    bytes.writeUInt8(ifTrue, index * 8 + 2);
    bytes.writeUInt8(ifFalse, index * 8 + 3);
    bytes.writeUInt32LE(value >>> 0, index * 8 + 4);
  });
  return bytes;
}
