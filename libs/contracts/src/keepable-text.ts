/** Text that PostgreSQL and UTF-8 can store: replaces a NUL character or an unpaired surrogate by U+FFFD. */
export const keepableText = (text: string): string => text.toWellFormed().replaceAll('\0', '\uFFFD');
