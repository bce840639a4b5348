import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib';

/** The content is not what its encoding says. */
export class BadEncoding extends Error {}
export class DecodedTooLarge extends Error {}

const gzip = promisify(gunzip);
const DECODERS = new Map<string, (body: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>>([
  ['gzip', gzip],
  ['x-gzip', gzip],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
  ['zstd', promisify(zstdDecompress)],
]);

/** Whether a body with this `Content-Encoding` can be decoded. */
export const isDecodable = (encoding: string | undefined): boolean => DECODERS.has(nameOf(encoding));

/**
 * Decodes a body. One in an encoding that is unknown, or in several, stays as it is.
 *
 * @param limit the largest result, in bytes
 * @throws BadEncoding
 * @throws DecodedTooLarge
 */
export async function decodedBody(encoding: string | undefined, bytes: Buffer, limit: number): Promise<Buffer> {
  const decode = DECODERS.get(nameOf(encoding));
  if (!decode || bytes.length === 0) return bytes;
  try {
    return await decode(bytes, { maxOutputLength: limit });
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE') throw new DecodedTooLarge();
    throw new BadEncoding(`the body is not ${nameOf(encoding)}, as its Content-Encoding says`);
  }
}

const nameOf = (encoding = ''): string => encoding.trim().toLowerCase();
