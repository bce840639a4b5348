import { SluiceError } from '#contracts';

/** The replies to a query for all of the keys. A query whose reply would be too large is repeated with one half of its keys, and then with the other. */
export async function inHalves<Key, Reply>(keys: Key[], query: (keys: Key[]) => Promise<Reply[]>): Promise<Reply[]> {
  try {
    return await query(keys);
  } catch (error) {
    if (!(error instanceof SluiceError && error.code === 'unprocessable') || keys.length < 2) throw error;
    const middle = Math.ceil(keys.length / 2);
    return [...(await inHalves(keys.slice(0, middle), query)), ...(await inHalves(keys.slice(middle), query))];
  }
}
