/** Text that others wrote, for a terminal: control characters, which could change what it shows, appear as `\u001b`. Lines and tabs are kept. */
export const printable = (text: string): string =>
  text.replace(/[^\P{Cc}\n\t]/gu, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
