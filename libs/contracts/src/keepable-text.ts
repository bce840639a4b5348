/** Text that PostgreSQL and UTF-8 can keep: a NUL character or half of a surrogate pair becomes U+FFFD. */
export const keepableText = (text: string): string => text.toWellFormed().replaceAll('\0', '\uFFFD');
