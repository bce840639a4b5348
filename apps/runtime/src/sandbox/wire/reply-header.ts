// The limits of the headers of a response. Both ends check them.

export const mostReplyHeaders = 100;
const longestName = 256;
const longestValue = 16_384;
const mostValues = 100;

export const replyHeaderLimits = `a name has at most ${longestName} letters, digits or hyphens, a value ${longestValue} characters of Latin-1, and there are at most ${mostValues} values`;

/** Whether Node sends this header: its `writeHead` would throw in the parent otherwise. */
export function isReplyHeader(name: string, value: string | string[]): boolean {
  const values = typeof value === 'string' ? [value] : value;
  const isSendable = (text: string) => text.length <= longestValue && /^[\t\x20-\x7e\x80-\xff]*$/.test(text);
  return /^[\w!#$%&'*+.^`|~-]+$/.test(name) && name.length <= longestName && values.length <= mostValues && values.every(isSendable);
}
