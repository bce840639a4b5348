// Character codes as literals: the loops below are fast because the compiler knows them
const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openList = 0x5b;
const openObject = 0x7b;

// From here on, native code searches for the next quote
const longString = 1024;

/**
 * Counts what `JSON.parse` would create from these bytes: strings, lists, objects and commas. Bytes that are not JSON give an arbitrary number.
 * @param most counting stops above this number
 */
export function countTokens(bytes: Buffer, most: number): number {
  let tokens = 0;
  for (let at = 0; at < bytes.length && tokens <= most; at++) {
    const sign = bytes[at];
    if (sign === quote) {
      tokens++;
      at = endOfStringBytes(bytes, at + 1);
    } else if (sign === comma || sign === openList || sign === openObject) tokens++;
  }
  return tokens;
}

/** The closing quote, or the end. */
function endOfStringBytes(bytes: Buffer, from: number): number {
  let plainSince = from;
  // Kept for the escapes before it: searching for it after each of them would take the square of their number
  let nextQuote = -1;
  for (let at = from; at < bytes.length; at++) {
    const sign = bytes[at];
    if (sign === quote) return at;
    if (sign === backslash) {
      at++;
      plainSince = at;
    } else if (at - plainSince >= longString) {
      if (nextQuote < at) {
        const found = bytes.indexOf(quote, at);
        nextQuote = found < 0 ? bytes.length : found;
      }
      const escape = bytes.subarray(at, nextQuote).indexOf(backslash);
      if (escape < 0) return nextQuote;
      // The text before the escape is plain
      at += escape - 1;
      plainSince = at;
    }
  }
  return bytes.length;
}

/** How deep JSON text is nested. It reads the text, because parsing and serialising need a stack frame per level. */
export function depthOf(json: string): number {
  let depth = 0;
  let deepest = 0;
  let inText = false;
  for (let i = 0; i < json.length; i++) {
    const char = json.charCodeAt(i);
    if (inText) {
      if (char === 92) i++;
      else if (char === 34) inText = false;
    } else if (char === 34) inText = true;
    else if (char === 91 || char === 123) deepest = Math.max(deepest, ++depth);
    else if (char === 93 || char === 125) depth--;
  }
  return deepest;
}
