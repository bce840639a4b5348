import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';

const mostBytes = 16 << 20;

/** A bundle of packages as it travels and is stored: compressed, in base64. */
export const packPackages = (code: string): string => zstdCompressSync(code).toString('base64');

export const unpackPackages = (stored: string): string =>
  zstdDecompressSync(Buffer.from(stored, 'base64'), { maxOutputLength: mostBytes }).toString();
