// The limits of names that components choose and that the database stores. Both ends check them.

/** In bytes of UTF-8. PostgreSQL cannot index a key of more than about 2700 bytes, and the whole run would fail. */
export const longestDbKey = 1024;

/** PostgreSQL stores neither NUL characters nor unpaired surrogates. */
export const isStorable = (name: string): boolean => !name.includes('\0') && name.isWellFormed();

/** A prop's name is part of keys, URLs and messages. */
export const longestPropName = 256;

export const isPropName = (name: string): boolean => name !== '' && name.length <= longestPropName && isStorable(name);
