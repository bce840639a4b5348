import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { type ComponentCodeReply, getCode } from '#contracts';
import { Messages } from '#messaging';

const MAX_BYTES = 64 * 1024 * 1024;

/** Code by its hash. It never changes, so it is fetched once and kept. */
@Injectable()
export class CodeCache {
  private readonly cache = new LRUCache<string, ComponentCodeReply>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ code }) => code.length + 1000,
  });

  constructor(private readonly messages: Messages) {}

  /** Throws TimedOut or Unavailable if the catalog does not reply. */
  async get(hash: string): Promise<ComponentCodeReply> {
    const known = this.cache.get(hash);
    if (known) return known;
    const reply = await this.messages.request(getCode, { code_hash: hash }, { key: hash });
    this.cache.set(hash, reply);
    return reply;
  }
}
