/** What is sent together: the broker refuses a batch that is larger than its topic's `max.message.bytes`, again and again. */
const SHARE_BYTES = 256 * 1024;

/** The rows in their order, as many together as fit into a share; one that is larger goes alone. */
export function shares<Row extends { value: Buffer | null }>(rows: Row[]): Row[][] {
  const found: Row[][] = [];
  let bytes = Infinity;
  for (const row of rows) {
    const size = row.value?.length ?? 0;
    if (bytes + size > SHARE_BYTES) {
      found.push([]);
      bytes = 0;
    }
    found.at(-1)?.push(row);
    bytes += size;
  }
  return found;
}
