/** Scans the bytes of valid JSON, to find the parts of it without parsing them. */
export const CODE = {
  quote: 0x22,
  plus: 0x2b,
  comma: 0x2c,
  minus: 0x2d,
  dot: 0x2e,
  zero: 0x30,
  nine: 0x39,
  colon: 0x3a,
  upperE: 0x45,
  openArray: 0x5b,
  backslash: 0x5c,
  closeArray: 0x5d,
  e: 0x65,
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

/** The JSON of an object's member; undefined if there is none, or the value is not an object. Of several with the same name, the last one counts. */
export function memberOf(json: Buffer | undefined, name: string): Buffer | undefined {
  let found: Buffer | undefined;
  if (json === undefined) return found;
  let at = skipSpace(json, 0);
  if (json[at] !== CODE.openObject) return found;
  const wanted = Buffer.from(JSON.stringify(name));
  for (at = skipSpace(json, at + 1); json[at] === CODE.quote;) {
    const nameEnd = valueEnd(json, at);
    const start = skipSpace(json, skipSpace(json, nameEnd) + 1);
    const end = valueEnd(json, start);
    if (isString(json, at, nameEnd, wanted, name)) found = json.subarray(start, end);
    at = next(json, end);
  }
  return found;
}

const valueEnd = (json: Buffer, start: number): number => endOfValue(json, start, json.length) ?? json.length;

/** A string without escapes is not decoded. */
function isString(json: Buffer, start: number, end: number, quoted: Buffer, text: string): boolean {
  for (let at = start; at < end; at++) if (json[at] === CODE.backslash) return decoded(json, start, end) === text;
  return end - start === quoted.length && json.compare(quoted, 0, quoted.length, start, end) === 0;
}

/** The characters of a string, whose quotes are at the ends. */
export function decoded(json: Buffer, start: number, end: number): string {
  for (let at = start; at < end; at++) if (json[at] === CODE.backslash) return JSON.parse(json.toString('utf8', start, end)) as string;
  return json.toString('utf8', start + 1, end - 1);
}

/** The characters of a value that is a string. */
export function textOf(json: Buffer | undefined): string | undefined {
  const start = json === undefined ? 0 : skipSpace(json, 0);
  return json?.[start] === CODE.quote ? decoded(json, start, valueEnd(json, start)) : undefined;
}
