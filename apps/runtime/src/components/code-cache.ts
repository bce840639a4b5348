import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { type ComponentDescription, getCode } from '#contracts';
import { Messages } from '#messaging';
import type { ComponentCode } from '../sandbox/sandbox.js';

/** The largest bundle that is unpacked. */
const MAX_PACKAGES_BYTES = 16 << 20;

/** A bundle of packages as it travels and is stored: compressed, in base64. */
export const packPackages = (code: string): string => zstdCompressSync(code).toString('base64');

export const unpackPackages = (stored: string): string =>
  zstdDecompressSync(Buffer.from(stored, 'base64'), { maxOutputLength: MAX_PACKAGES_BYTES }).toString();

interface KnownCode {
  component: ComponentCode;
  description: ComponentDescription;
}

/** The size of the cache. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Code by its hash. It never changes, so it is fetched once and kept. */
@Injectable()
export class CodeCache {
  private readonly cache = new LRUCache<string, KnownCode>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ component: { code, packages = '' } }) => code.length + packages.length + 1000,
  });

  constructor(private readonly messages: Messages) {}

  /** Throws TimedOut or Unavailable if the catalog does not reply. */
  async get(hash: string): Promise<KnownCode> {
    const known = this.cache.get(hash);
    if (known) return known;
    const { code, description, bundle } = await this.messages.request(getCode, { code_hash: hash }, { key: hash });
    const component = { hash, code, ...(bundle !== undefined && { packages: unpackPackages(bundle) }) };
    this.cache.set(hash, { component, description });
    return { component, description };
  }
}
