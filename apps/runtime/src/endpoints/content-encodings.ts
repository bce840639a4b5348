import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib';

/** The content is not what its encoding says. */
export class BadEncoding extends Error {}

/** Decodes a body: to null if it would have more than `limit` bytes. Throws BadEncoding. */
export type Decoder = (body: Buffer, limit: number) => Promise<Buffer | null>;

type Decompress = (body: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;

const gzip = promisify(gunzip);
const DECOMPRESS = new Map<string, Decompress>([
  ['gzip', gzip],
  ['x-gzip', gzip],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
  ['zstd', promisify(zstdDecompress)],
]);

/** The decoder for a `Content-Encoding`; undefined for one that is unknown, and for several: such a body stays as it is. */
export function decoderOf(encoding = ''): Decoder | undefined {
  const name = encoding.trim().toLowerCase();
  const decompress = DECOMPRESS.get(name);
  if (!decompress) return undefined;
  return async (body, limit) => {
    try {
      return await decompress(body, { maxOutputLength: limit });
    } catch (error) {
      if ((error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE') return null;
      throw new BadEncoding(`the body is not ${name}, as its Content-Encoding says`);
    }
  };
}
