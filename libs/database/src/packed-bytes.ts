/** Byte strings as parameters of a statement: where each begins (from 1), its length (null: it is null), and the bytes of all. */
export type PackedBytes = [starts: number[], lengths: (number | null)[], bytes: Buffer];

/**
 * node-postgres sends one Buffer as it is, but an array of them as text in hexadecimal digits: twice the bytes, which cost PostgreSQL and the main thread
 * more than twice the CPU time.
 */
export function packedBytes(values: (Buffer | null)[]): PackedBytes {
  let end = 1;
  const starts = values.map((value) => {
    const start = end;
    end += value?.length ?? 0;
    return start;
  });
  return [starts, values.map((value) => value?.length ?? null), Buffer.concat(values.filter((value) => value !== null))];
}

/** SQL of the byte string of a row with the columns `start` and `length`. @param bytes the parameter, such as `$3` */
export const unpackedBytes = (bytes: string): string => `substring(${bytes}::bytea FROM start FOR length)`;
