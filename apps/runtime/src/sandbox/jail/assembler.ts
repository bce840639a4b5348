/** The few x86-64 instructions of `confine`, with labels. */
export class Assembler {
  private readonly code: number[] = [];
  private readonly labels = new Map<string, number>();
  private readonly jumps: { at: number; to: string }[] = [];

  /** Adds the bytes of an instruction. */
  emit(...bytes: number[]): void {
    this.code.push(...bytes);
  }

  label(name: string): void {
    this.labels.set(name, this.code.length);
  }

  eax(value: number): void {
    this.emit(0xb8, ...int(value));
  }

  ebx(value: number): void {
    this.emit(0xbb, ...int(value));
  }

  edx(value: number): void {
    this.emit(0xba, ...int(value));
  }

  esi(value: number): void {
    this.emit(0xbe, ...int(value));
  }

  edi(value: number): void {
    this.emit(0xbf, ...int(value));
  }

  /** The arguments are in edi, esi, edx, r10 and r8, the result in eax. */
  systemCall(number: number): void {
    this.eax(number);
    this.emit(0x0f, 0x05);
  }

  /** value: at most 127. */
  compareEax(value: number): void {
    this.emit(0x83, 0xf8, value);
  }

  compareByteAtRdi(character: string): void {
    this.emit(0x80, 0x3f, character.charCodeAt(0));
  }

  jump(to: string): void {
    this.emit(0xe9);
    this.target(to);
  }

  jumpIfEqual(to: string): void {
    this.emit(0x0f, 0x84);
    this.target(to);
  }

  jumpIfLess(to: string): void {
    this.emit(0x0f, 0x8c);
    this.target(to);
  }

  /** Jumps if eax is negative: a system call has failed. */
  jumpIfNegative(to: string): void {
    this.emit(0x85, 0xc0, 0x0f, 0x88);
    this.target(to);
  }

  /** The code, in which each jump has its distance. */
  bytes(): Buffer {
    const bytes = Buffer.from(this.code);
    for (const { at, to } of this.jumps) bytes.writeInt32LE(this.labels.get(to)! - (at + 4), at);
    return bytes;
  }

  /** A relative address of 32 bits, which follows its opcode. */
  private target(to: string): void {
    this.jumps.push({ at: this.code.length, to });
    this.emit(0, 0, 0, 0);
  }
}

/** 32 bits, little-endian. */
export function int(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** 64 bits, little-endian. */
export function long(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
