/**
 * Text that others wrote, for a terminal: characters that could change what it shows (control characters, line breaks of Unicode, changes of the direction of
 * text) appear as `\u001b`. Lines and tabs are kept.
 */
export const printable = (text: string): string =>
  text.replace(
    /[^\P{Cc}\n\t]|[\u2028-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
