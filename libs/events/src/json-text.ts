import { MAX_JSON_DEPTH } from '#contracts';
import { CODE, skipSpace } from './json-scan.js';

/** Why bytes are not JSON, such as `a comma is missing at byte 17`. */
export class NotJson extends Error {}

/** Why bytes are not read although they may be JSON: a clause such as `the event is nested deeper than 200 levels`. */
export class TooMuchJson extends NotJson {}

const enum Kind {
  Other,
  Space,
  Quote,
  Comma,
  Colon,
  OpenList,
  CloseList,
  OpenObject,
  CloseObject,
}

const kinds = new Uint8Array(256);
for (const [sign, kind] of Object.entries({
  ' ': Kind.Space,
  '\n': Kind.Space,
  '\r': Kind.Space,
  '\t': Kind.Space,
  '"': Kind.Quote,
  ',': Kind.Comma,
  ':': Kind.Colon,
  '[': Kind.OpenList,
  ']': Kind.CloseList,
  '{': Kind.OpenObject,
  '}': Kind.CloseObject,
}))
  kinds[sign.charCodeAt(0)] = kind;

/** 1 for the bytes that end the plain text of a string: a quote, a backslash and control characters. */
const endsPlainText = new Uint8Array(256).fill(1, 0, 0x20);
endsPlainText[CODE.quote] = endsPlainText[CODE.backslash] = 1;

const bytesOf = (characters: string): Uint8Array => {
  const table = new Uint8Array(256);
  for (const byte of Buffer.from(characters)) table[byte] = 1;
  return table;
};
/** The byte after a backslash, without `u`. */
const escapes = bytesOf('"\\/bfnrt');
const hexDigits = bytesOf('0123456789abcdefABCDEF');

const enum Next {
  Value,
  ValueOrEnd,
  Key,
  KeyOrEnd,
  CommaOrEnd,
}

/**
 * Checks that bytes are JSON (RFC 8259, what `JSON.parse` accepts) without building the value: its cost depends on the bytes alone, at most 5 ms of CPU
 * per MiB. `JSON.parse` takes up to 300 ms and ten times the memory for a MiB of brackets or names.
 * @param bytes UTF-8
 * @param levels how many levels it may have
 * @throws NotJson
 */
export function checkJson(bytes: Buffer, levels = MAX_JSON_DEPTH): void {
  checkEnd(bytes, endOfJson(bytes, skipSpace(bytes, 0), levels));
}

/** Checks that nothing follows the value that ends here. @throws NotJson */
export function checkEnd(bytes: Buffer, end: number): void {
  const rest = skipSpace(bytes, end);
  if (rest < bytes.length) throw new NotJson(`more than one value: the second one is at byte ${rest}`);
}

/** Most events are so small that creating another one would take as long as reading them. */
const shallow = new Uint8Array(MAX_JSON_DEPTH + 1);

/**
 * The end of the JSON value that begins here, checked as by `checkJson`.
 * @throws NotJson
 */
export function endOfJson(bytes: Buffer, start: number, levels = MAX_JSON_DEPTH): number {
  const { length } = bytes;
  // the closing characters of all open lists and objects, outermost first
  const open = levels <= MAX_JSON_DEPTH ? shallow : new Uint8Array(Math.min(levels, length - start) + 1);
  let depth = 0;
  let next = Next.Value;
  let at = start;
  while (at < length) {
    const kind = kinds[bytes[at]!] as Kind;
    if (kind === Kind.Space) {
      at++;
      continue;
    }
    if (next === Next.CommaOrEnd) {
      if (kind === Kind.Comma) next = (open[depth] as Kind) === Kind.CloseObject ? Next.Key : Next.Value;
      else if (kind === (open[depth] as Kind)) depth--;
      else throw new NotJson(`a comma is missing at byte ${at}`);
      at++;
    } else if (next === Next.Key || next === Next.KeyOrEnd) {
      if (kind === Kind.Quote) {
        at = startOfValue(bytes, endOfString(bytes, at));
        next = Next.Value;
        continue;
      } else if (kind !== Kind.CloseObject || next !== Next.KeyOrEnd) throw new NotJson(`a name is missing at byte ${at}`);
      depth--;
      next = Next.CommaOrEnd;
      at++;
    } else if (kind === Kind.OpenObject || kind === Kind.OpenList) {
      if (depth >= levels) throw new TooMuchJson(`the event is nested deeper than ${levels} levels`);
      open[++depth] = kind === Kind.OpenObject ? Kind.CloseObject : Kind.CloseList;
      next = kind === Kind.OpenObject ? Next.KeyOrEnd : Next.ValueOrEnd;
      at++;
    } else if (kind === Kind.CloseList && next === Next.ValueOrEnd) {
      depth--;
      next = Next.CommaOrEnd;
      at++;
    } else {
      at = kind === Kind.Quote ? endOfString(bytes, at) : endOfLiteral(bytes, at);
      next = Next.CommaOrEnd;
    }
    if (depth === 0 && next === Next.CommaOrEnd) return at;
  }
  throw new NotJson('it ends too early');
}

/** The start of a member's value. @param nameEnd the end of its name */
export function startOfValue(bytes: Buffer, nameEnd: number): number {
  const at = skipSpace(bytes, nameEnd);
  if (bytes[at] !== CODE.colon) throw new NotJson(`a colon is missing at byte ${at}`);
  return skipSpace(bytes, at + 1);
}

/** The end of the string whose opening quote is here. @throws NotJson */
export function endOfString(bytes: Buffer, start: number): number {
  const { length } = bytes;
  let at = start + 1;
  while (at < length) {
    const code = bytes[at]!;
    if (endsPlainText[code] === 0) {
      at++;
      continue;
    }
    if (code === CODE.quote) return at + 1;
    if (code !== CODE.backslash) throw new NotJson(`a string has a control character at byte ${at}`);
    const escape = bytes[at + 1] ?? 0;
    if (escapes[escape] === 1) at += 2;
    else if (escape === CODE.u && isHex(bytes, at + 2)) at += 6;
    else throw new NotJson(`a string has an unknown escape at byte ${at}`);
  }
  throw new NotJson(`the string at byte ${start} has no end`);
}

function isHex(bytes: Buffer, start: number): boolean {
  for (let at = start; at < start + 4; at++) if (hexDigits[bytes[at] ?? 0] === 0) return false;
  return true;
}

const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
const WORD_NULL = Buffer.from('null');

function endOfLiteral(bytes: Buffer, start: number): number {
  const code = bytes[start]!;
  const word = code === TRUE[0] ? TRUE : code === FALSE[0] ? FALSE : code === WORD_NULL[0] ? WORD_NULL : undefined;
  if (word) {
    for (let n = 1; n < word.length; n++) if (bytes[start + n] !== word[n]) throw new NotJson(`unexpected character at byte ${start}`);
    return start + word.length;
  }
  let at = code === CODE.minus ? start + 1 : start;
  const whole = endOfDigits(bytes, at);
  if (bytes[at] === CODE.zero && whole > at + 1) throw new NotJson(`a number begins with 0 at byte ${at}`);
  at = whole;
  if (bytes[at] === CODE.dot) at = endOfDigits(bytes, at + 1);
  if (bytes[at] !== CODE.e && bytes[at] !== CODE.upperE) return at;
  at++;
  if (bytes[at] === CODE.plus || bytes[at] === CODE.minus) at++;
  return endOfDigits(bytes, at);
}

function endOfDigits(bytes: Buffer, start: number): number {
  let at = start;
  while (at < bytes.length && bytes[at]! >= CODE.zero && bytes[at]! <= CODE.nine) at++;
  if (at === start) throw new NotJson(start < bytes.length ? `unexpected character at byte ${start}` : 'it ends too early');
  return at;
}

const UTF8_BOM = Buffer.from('\uFEFF');

/** The bytes behind a byte order mark in UTF-8, if they begin with one: some producers write it (readers may ignore it: RFC 8259, 8.1). */
export const withoutBom = (bytes: Buffer): Buffer =>
  bytes[0] === UTF8_BOM[0] && bytes.subarray(0, 3).equals(UTF8_BOM) ? bytes.subarray(3) : bytes;
