/** Type of a column whose text is compared byte by byte, whatever the server's locale: ids, keys, names of streams. */
export const BYTEWISE_TEXT = { type: 'text', collation: 'C' } as const;

/** Type of the column that holds the time at which a row was created. */
export const CREATED_AT = { type: 'timestamptz', default: () => 'now()' } as const;
