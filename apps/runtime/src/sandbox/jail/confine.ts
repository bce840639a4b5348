import { Assembler, int, long } from './assembler.js';

/**
 * A program of about 600 bytes, and the filter, that gives up its privileges, except those that its arguments list, and then executes another program:
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
export function confineProgram(filter: Buffer | null): Buffer | null {
  if (!filter || process.arch !== 'x64') return null;
  // The code contains addresses that depend on its length, which is known in the second pass
  const { length } = assemble(filter, 0);
  const code = assemble(filter, length);
  return executable(Buffer.concat([code, dataOf(filter, code.length).bytes]));
}

/** A file with this code, and the data that follows it. */
export function executable(contents: Buffer): Buffer {
  return Buffer.concat([elfHeader(headerBytes + contents.length), contents]);
}

type Data = ReturnType<typeof dataOf>;

/** The data that follows the code, and its addresses. */
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

/** The steps in their order. The stack has argc, argv[0], argv[1], …, null, the environment. rbx is the step, r12 the ruleset, r13 the current entry of argv. */
function assemble(filter: Buffer, codeBytes: number): Buffer {
  const data = dataOf(filter, codeBytes);
  const code = new Assembler();
  denyNewPrivileges(code);
  skipLandlockWithoutPaths(code);
  createRuleset(code, data);
  addRules(code);
  restrictFiles(code);
  applyFilter(code, data);
  executeProgram(code);
  exitWithStep(code);
  return code.bytes();
}

function denyNewPrivileges(code: Assembler): void {
  code.ebx(101);
  code.edi(noNewPrivileges);
  code.esi(1);
  code.edx(0);
  clearRest(code);
  systemCall(code, call.prctl);
}

function skipLandlockWithoutPaths(code: Assembler): void {
  code.emit(0x4c, 0x8d, 0x6c, 0x24, 0x10); // lea r13, [rsp+16]: argv[1]
  loadArgument(code);
  code.compareByteAtRdi('-');
  code.jumpIfEqual('filter');
}

/** With the newest attributes that this kernel knows. */
function createRuleset(code: Assembler, data: Data): void {
  code.ebx(102);
  code.edi(0);
  code.esi(0);
  code.edx(askVersion);
  code.systemCall(call.landlockCreate);
  code.compareEax(3);
  code.jumpIfLess('fail');
  code.ebx(103);
  code.edi(data.version3);
  code.esi(8);
  code.edx(0);
  code.compareEax(5);
  code.jumpIfLess('create');
  code.edi(data.version5);
  code.compareEax(6);
  code.jumpIfLess('create');
  code.edi(data.version6);
  code.esi(24);
  code.label('create');
  systemCall(code, call.landlockCreate);
  code.emit(0x49, 0x89, 0xc4); // mov r12, rax
}

/** A rule for each argument before the `-`. */
function addRules(code: Assembler): void {
  code.ebx(104);
  code.label('rule');
  loadArgument(code);
  code.compareByteAtRdi('-');
  code.jumpIfEqual('restrict');
  code.eax(execute);
  code.compareByteAtRdi('x');
  code.jumpIfEqual('open');
  code.eax(write);
  code.compareByteAtRdi('w');
  code.jumpIfEqual('open');
  code.eax(read);
  code.label('open');
  code.emit(0x89, 0x44, 0x24, 0xe0); // mov [rsp-32], eax: the access that the rule allows
  code.emit(0xc7, 0x44, 0x24, 0xe4, ...int(0)); // mov dword [rsp-28], 0
  code.emit(0x48, 0xff, 0xc7); // inc rdi: the path
  code.esi(pathOnly);
  code.edx(0);
  systemCall(code, call.open);
  code.emit(0x89, 0x44, 0x24, 0xe8); // mov [rsp-24], eax: the file or folder
  code.emit(0x4c, 0x89, 0xe7); // mov rdi, r12
  code.esi(pathBeneath);
  code.emit(0x48, 0x8d, 0x54, 0x24, 0xe0); // lea rdx, [rsp-32]
  clearRest(code);
  systemCall(code, call.landlockAdd);
  code.emit(0x49, 0x83, 0xc5, 0x08); // add r13, 8
  code.jump('rule');
}

function restrictFiles(code: Assembler): void {
  code.label('restrict');
  code.ebx(105);
  code.emit(0x4c, 0x89, 0xe7); // mov rdi, r12
  code.esi(0);
  systemCall(code, call.landlockRestrict);
}

function applyFilter(code: Assembler, data: Data): void {
  code.label('filter');
  code.ebx(106);
  code.edi(setSeccomp);
  code.esi(filterMode);
  code.edx(data.program);
  clearRest(code);
  systemCall(code, call.prctl);
}

/** r13 is at the `-`. */
function executeProgram(code: Assembler): void {
  code.ebx(107);
  code.emit(0x49, 0x8b, 0x7d, 0x08); // mov rdi, [r13+8]
  code.emit(0x49, 0x8d, 0x75, 0x08); // lea rsi, [r13+8]
  code.emit(0x48, 0x8b, 0x04, 0x24); // mov rax, [rsp]: argc
  code.emit(0x48, 0x8d, 0x54, 0xc4, 0x10); // lea rdx, [rsp+8*rax+16]: the environment
  code.systemCall(call.execve);
}

function exitWithStep(code: Assembler): void {
  code.label('fail');
  code.emit(0x89, 0xdf); // mov edi, ebx
  code.systemCall(call.exit);
}

function loadArgument(code: Assembler): void {
  code.emit(0x49, 0x8b, 0x7d, 0x00); // mov rdi, [r13]
}

/** The fourth and the fifth argument of a system call. */
function clearRest(code: Assembler): void {
  code.emit(0x45, 0x31, 0xd2, 0x45, 0x31, 0xc0); // xor r10d, r10d; xor r8d, r8d
}

/** A system call that must succeed. */
function systemCall(code: Assembler, number: number): void {
  code.systemCall(number);
  code.jumpIfNegative('fail');
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
