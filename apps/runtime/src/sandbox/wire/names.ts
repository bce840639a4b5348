// The limits of names that components choose and that the database stores. Both ends check them.

/** In bytes of UTF-8. PostgreSQL cannot index a key of more than about 2700 bytes, and the whole run would fail. */
export const longestDbKey = 1024;

/** PostgreSQL stores neither NUL characters nor unpaired surrogates. */
export const isStorable = (name: string): boolean => !name.includes('\0') && name.isWellFormed();

/**
 * The problem of the name of a stream on which a component emits, or null. See `emittedStreamProblem`, which processes of components cannot import. The
 * length is limited by `$emit`, like those of other texts.
 */
export function streamNameProblem(name: string): string | null {
  if (!isStorable(name)) return 'must not contain a NUL character or an unpaired surrogate';
  if (name === '*') return 'must not be *, which stands for all streams';
  if (name.startsWith('$') && name !== '$errors' && name !== '$logs') return 'may begin with $ only as $errors or $logs';
  return null;
}

/** A prop's name is part of keys, URLs and messages. */
export const longestPropName = 256;

export const isPropName = (name: string): boolean => name !== '' && name.length <= longestPropName && isStorable(name);
