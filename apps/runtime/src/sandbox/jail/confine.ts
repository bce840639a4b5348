/**
 * A program of about 600 bytes that gives up its privileges, except those that its arguments list, and then executes another program:
 *
 *     confine [x<path> …] [r<path> …] [w<path> …] - <program> <argument> …
 *
 *     x<path>   allows reading and executing this file, or the files below this folder
 *     r<path>   allows reading and listing the files below this folder
 *     w<path>   below this folder, files and folders may also be made, written, moved and removed
 *     none      does not restrict files; for a jail whose root directory has no others
 *
 * The steps: no new privileges, Landlock, the seccomp filter (which is part of the program), execve. Node supports none of them, and setpriv(1) only
 * since util-linux 2.41, so the program is generated here, instruction by instruction. Its exit status states which step failed.
 */
const failures: Record<string, string> = {
  101: 'no new privileges',
  102: 'Landlock of Linux 6.2 or later',
  103: 'a Landlock ruleset',
  104: 'a Landlock rule for a path',
  105: 'Landlock',
  106: 'the seccomp filter',
  107: 'the start of the program',
};

/** Why `confine` failed with this exit status; undefined: the status is that of the program that it executed. */
export function confineFailure(exit: string): string | undefined {
  return failures[exit] && `it could not apply ${failures[exit]}`;
}

const baseAddress = 0x40_0000;
const headerBytes = 64 + 56;

const call = { open: 2, execve: 59, exit: 60, prctl: 157, landlockCreate: 444, landlockAdd: 445, landlockRestrict: 446 };
const noNewPrivileges = 38;
const setSeccomp = 22;
const filterMode = 2;
const pathOnly = 0x20_0000 | 0x8_0000;
const askVersion = 1;
const pathBeneath = 1;

// linux/landlock.h: execute 1, read a file 4, list a folder 8
const execute = 1 | 4;
const read = 4 | 8;
// write a file 2, remove a folder 16, a file 32, make a folder 128, a file 256, move 8192, truncate 16384
const write = read | 2 | 16 | 32 | 128 | 256 | 8192 | 16384;
// Handles every access that this version of Landlock knows, so any access without a rule is denied
const filesUpTo = { version3: 0x7fff, version5: 0xffff };
const tcp = 3;
const abstractSocketsAndSignals = 3;

/**
 * The program with this filter; null: this processor is not supported.
 * @param filter as `seccompFilter` returns it
 */
export function confineProgram(filter: Buffer | null, arch: NodeJS.Architecture = process.arch): Buffer | null {
  if (!filter || arch !== 'x64') return null;
  // The code contains addresses that depend on its length, which is known in the second pass
  const { length } = assemble(filter, 0);
  const code = assemble(filter, length);
  const file = Buffer.concat([
    elfHeader(headerBytes + code.length + dataOf(filter, 0).bytes.length),
    code,
    dataOf(filter, code.length).bytes,
  ]);
  return file;
}

/** The data that follows the code, and its address. */
function dataOf(filter: Buffer, codeBytes: number) {
  const start = baseAddress + headerBytes + codeBytes;
  const attributes = (...values: number[]): Buffer => Buffer.concat(values.map(long));
  const version3 = attributes(filesUpTo.version3);
  const version5 = attributes(filesUpTo.version5);
  const version6 = attributes(filesUpTo.version5, tcp, abstractSocketsAndSignals);
  const filterAt = start + version3.length + version5.length + version6.length + 16;
  const program = Buffer.concat([int(filter.length / 8), int(0), long(filterAt)]);
  return {
    bytes: Buffer.concat([version3, version5, version6, program, filter]),
    version3: start,
    version5: start + 8,
    version6: start + 16,
    program: start + 40,
  };
}

/** x86-64. The stack has argc, argv[0], argv[1], …, null, the environment. rbx is the step, r12 the ruleset, r13 the current entry of argv. */
function assemble(filter: Buffer, codeBytes: number): Buffer {
  const data = dataOf(filter, codeBytes);
  const code: number[] = [];
  const labels = new Map<string, number>();
  const jumps: { at: number; to: string }[] = [];
  const emit = (...bytes: number[]): void => void code.push(...bytes);
  const label = (name: string): void => void labels.set(name, code.length);
  /** A relative address of 32 bits, which follows its opcode. */
  const target = (to: string): void => {
    jumps.push({ at: code.length, to });
    emit(0, 0, 0, 0);
  };
  const jump = (to: string): void => (emit(0xe9), target(to));
  const ifEqual = (to: string): void => (emit(0x0f, 0x84), target(to));
  const ifLess = (to: string): void => (emit(0x0f, 0x8c), target(to));
  const failIfNegative = (): void => (emit(0x85, 0xc0, 0x0f, 0x88), target('fail'));
  const eax = (value: number): void => emit(0xb8, ...int(value));
  const edi = (value: number): void => emit(0xbf, ...int(value));
  const esi = (value: number): void => emit(0xbe, ...int(value));
  const edx = (value: number): void => emit(0xba, ...int(value));
  const system = (number: number): void => (eax(number), emit(0x0f, 0x05));
  const step = (status: number): void => emit(0xbb, ...int(status));
  const clearRest = (): void => emit(0x45, 0x31, 0xd2, 0x45, 0x31, 0xc0); // r10, r8

  step(101);
  edi(noNewPrivileges);
  esi(1);
  edx(0);
  clearRest();
  system(call.prctl);
  failIfNegative();
  emit(0x4c, 0x8d, 0x6c, 0x24, 0x10); // lea r13, [rsp+16]: argv[1]
  emit(0x49, 0x8b, 0x7d, 0x00); // mov rdi, [r13]
  emit(0x80, 0x3f, '-'.charCodeAt(0)); // cmp byte [rdi], '-'
  ifEqual('filter');

  step(102);
  edi(0);
  esi(0);
  edx(askVersion);
  system(call.landlockCreate);
  emit(0x83, 0xf8, 3); // cmp eax, 3
  ifLess('fail');
  step(103);
  edi(data.version3);
  esi(8);
  edx(0);
  emit(0x83, 0xf8, 5);
  ifLess('create');
  edi(data.version5);
  emit(0x83, 0xf8, 6);
  ifLess('create');
  edi(data.version6);
  esi(24);
  label('create');
  system(call.landlockCreate);
  failIfNegative();
  emit(0x49, 0x89, 0xc4); // mov r12, rax

  step(104);
  label('rule');
  emit(0x49, 0x8b, 0x7d, 0x00); // mov rdi, [r13]
  emit(0x80, 0x3f, '-'.charCodeAt(0));
  ifEqual('restrict');
  eax(execute);
  emit(0x80, 0x3f, 'x'.charCodeAt(0));
  ifEqual('open');
  eax(write);
  emit(0x80, 0x3f, 'w'.charCodeAt(0));
  ifEqual('open');
  eax(read);
  label('open');
  emit(0x89, 0x44, 0x24, 0xe0); // mov [rsp-32], eax: the access that the rule allows
  emit(0xc7, 0x44, 0x24, 0xe4, ...int(0)); // mov dword [rsp-28], 0
  emit(0x48, 0xff, 0xc7); // inc rdi: the path
  esi(pathOnly);
  edx(0);
  system(call.open);
  failIfNegative();
  emit(0x89, 0x44, 0x24, 0xe8); // mov [rsp-24], eax: the file or folder
  emit(0x4c, 0x89, 0xe7); // mov rdi, r12
  esi(pathBeneath);
  emit(0x48, 0x8d, 0x54, 0x24, 0xe0); // lea rdx, [rsp-32]
  clearRest();
  system(call.landlockAdd);
  failIfNegative();
  emit(0x49, 0x83, 0xc5, 0x08); // add r13, 8
  jump('rule');

  label('restrict');
  step(105);
  emit(0x4c, 0x89, 0xe7); // mov rdi, r12
  esi(0);
  system(call.landlockRestrict);
  failIfNegative();

  label('filter');
  step(106);
  edi(setSeccomp);
  esi(filterMode);
  edx(data.program);
  clearRest();
  system(call.prctl);
  failIfNegative();

  step(107);
  emit(0x49, 0x8b, 0x7d, 0x08); // mov rdi, [r13+8]
  emit(0x49, 0x8d, 0x75, 0x08); // lea rsi, [r13+8]
  emit(0x48, 0x8b, 0x04, 0x24); // mov rax, [rsp]: argc
  emit(0x48, 0x8d, 0x54, 0xc4, 0x10); // lea rdx, [rsp+8*rax+16]: the environment
  system(call.execve);

  label('fail');
  emit(0x89, 0xdf); // mov edi, ebx
  system(call.exit);

  const bytes = Buffer.from(code);
  for (const { at, to } of jumps) bytes.writeInt32LE(labels.get(to)! - (at + 4), at);
  return bytes;
}

/** The file is one segment, readable and executable. */
function elfHeader(fileBytes: number): Buffer {
  const short = (value: number): Buffer => Buffer.from([value & 255, value >> 8]);
  const identity = Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  const header = [short(2), short(62), int(1), long(baseAddress + headerBytes), long(64), long(0), int(0)];
  const sizes = [64, 56, 1, 0, 0, 0].map(short);
  const readAndExecute = 5;
  const segment = [
    int(1),
    int(readAndExecute),
    long(0),
    long(baseAddress),
    long(baseAddress),
    long(fileBytes),
    long(fileBytes),
    long(0x1000),
  ];
  return Buffer.concat([identity, ...header, ...sizes, ...segment]);
}

function int(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function long(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
