/** Scans the bytes of valid JSON, to find the parts of it without parsing them. */
export const CODE = {
  quote: 0x22,
  comma: 0x2c,
  minus: 0x2d,
  zero: 0x30,
  nine: 0x39,
  colon: 0x3a,
  openArray: 0x5b,
  backslash: 0x5c,
  closeArray: 0x5d,
  u: 0x75,
  openObject: 0x7b,
  closeObject: 0x7d,
};

export function skipSpace(json: Buffer, at: number): number {
  while (isSpace(json[at])) at += 1;
  return at;
}

const isSpace = (code: number | undefined): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

/** Skips a comma, if there is one, and the whitespace around it. */
export function next(json: Buffer, at: number): number {
  const end = skipSpace(json, at);
  return json[end] === CODE.comma ? skipSpace(json, end + 1) : end;
}

/** The end of the value that begins here; null if the value does not fit. Not recursive, because the nesting of events is not limited here. */
export function endOfValue(json: Buffer, start: number, space: number): number | null {
  const limit = start + space;
  let depth = 0;
  for (let at = start; at <= limit;) {
    const code = json[at];
    if (code === CODE.quote) {
      at += 1;
      while (json[at] !== CODE.quote) {
        if (at > limit) return null;
        at += json[at] === CODE.backslash ? 2 : 1;
      }
      at += 1;
      if (depth === 0) return at <= limit ? at : null;
      continue;
    }
    if (depth === 0 && at > start && endsScalar(code)) return at;
    at += 1;
    // a fast path: most bytes come before the brackets
    if (code === undefined || code < CODE.openArray) continue;
    if (code === CODE.openArray || code === CODE.openObject) depth += 1;
    else if (code === CODE.closeArray || code === CODE.closeObject) {
      depth -= 1;
      if (depth === 0) return at <= limit ? at : null;
    }
  }
  return null;
}

/** After a number or a word. */
const endsScalar = (code: number | undefined): boolean =>
  code === undefined || code === CODE.comma || code === CODE.closeArray || code === CODE.closeObject || isSpace(code);
