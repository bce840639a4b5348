/** Longer texts are seldom repeated. */
const MAX_BYTES = 40;
/** A power of two. */
const SLOTS = 512;
const FIRST_NOT_ASCII = 0x80;

/**
 * Decodes texts of which most occur again and again. One that was decoded before is recognised by its bytes, which needs a fraction of the time and no
 * memory. A text that is not repeated takes the place of another one.
 */
export class RepeatedTexts {
  private readonly known: (string | undefined)[] = Array.from({ length: SLOTS });

  /** The text of these bytes of the buffer. Invalid UTF-8 is replaced. */
  decode(buffer: Buffer, from: number, to: number): string {
    if (to - from > MAX_BYTES) return buffer.toString('utf8', from, to);
    let hash = 0;
    for (let at = from; at < to; at++) {
      const byte = buffer[at] as number;
      if (byte >= FIRST_NOT_ASCII) return buffer.toString('utf8', from, to);
      hash = (hash * 31 + byte) | 0;
    }
    const slot = hash & (SLOTS - 1);
    const known = this.known[slot];
    if (known !== undefined && isSame(known, buffer, from, to)) return known;
    return (this.known[slot] = buffer.toString('latin1', from, to));
  }
}

function isSame(text: string, buffer: Buffer, from: number, to: number): boolean {
  if (text.length !== to - from) return false;
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) !== buffer[from + index]) return false;
  return true;
}
