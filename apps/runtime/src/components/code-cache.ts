import { promisify } from 'node:util';
import { zstdDecompress } from 'node:zlib';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { type ComponentDescription, getCode, TimedOut, Unavailable, type UserId } from '#contracts';
import { AccountPace, BYTES_PER_UNIT } from '#fairness';
import { CallerGone, FairSlots, TooMuchWaiting } from '#limits';
import { Messages } from '#messaging';
import type { ComponentCode } from '../sandbox/sandbox.js';

/** The largest bundle that is unpacked. */
const MAX_PACKAGES_BYTES = 16 << 20;

const decompress = promisify(zstdDecompress);

/** The code of a PackageBundle that is packed. */
export const unpackPackages = async (stored: string): Promise<string> =>
  (await decompress(Buffer.from(stored, 'base64'), { maxOutputLength: MAX_PACKAGES_BYTES })).toString();

interface KnownCode {
  component: ComponentCode;
  description: ComponentDescription;
}

/** The size of the cache, and of the part of it that an account may fill. */
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_ACCOUNT_BYTES = 24 * 1024 * 1024;
/** Descriptions are small and needed more often: a request to an endpoint needs no code. */
const MAX_DESCRIPTION_BYTES = 16 * 1024 * 1024;
/** Code that is fetched at a time. A large bundle occupies the catalog, Kafka and this process. */
const FETCHES = { atATime: 8, atATimePerAccount: 2, waitingPerAccount: 64, waiting: 512 };
const FETCHED_WITHIN_MS = 10_000;

/**
 * Code by its hash. It never changes, so it is fetched once and kept. All accounts share the cache; one that has more code than its part of it loses its own.
 */
@Injectable()
export class CodeCache {
  private readonly cache = new LRUCache<string, KnownCode & { account: UserId }>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ component }) => sizeOf(component),
    dispose: (code, hash) => this.parts.remove(code.account, hash),
  });
  private readonly descriptions = new LRUCache<string, ComponentDescription>({
    maxSize: MAX_DESCRIPTION_BYTES,
    sizeCalculation: (description) => JSON.stringify(description).length,
  });
  private readonly parts = new Parts();
  private readonly fetching = new Map<string, Promise<KnownCode>>();
  private readonly slots = new FairSlots(FETCHES);

  constructor(
    private readonly messages: Messages,
    private readonly pace: AccountPace,
  ) {}

  /** @param account whose source needs the code. Throws TimedOut or Unavailable if it cannot be fetched now. */
  get(account: UserId, hash: string): Promise<KnownCode> {
    const known = this.cache.get(hash);
    if (!known) return this.fetch(account, hash);
    this.parts.use(known.account, hash);
    return Promise.resolve(known);
  }

  /** The description of the code; the same errors. */
  async description(account: UserId, hash: string): Promise<ComponentDescription> {
    return this.descriptions.get(hash) ?? (await this.get(account, hash)).description;
  }

  /** Not shared between accounts: one would wait for the turn of the other. */
  private fetch(account: UserId, hash: string): Promise<KnownCode> {
    const key = `${account} ${hash}`;
    let fetching = this.fetching.get(key);
    if (!fetching) this.fetching.set(key, (fetching = this.fetchInTurn(account, hash).finally(() => this.fetching.delete(key))));
    return fetching;
  }

  private async fetchInTurn(account: UserId, hash: string): Promise<KnownCode> {
    try {
      return await this.slots.use(account, Date.now() + FETCHED_WITHIN_MS, () => this.fetchNow(account, hash));
    } catch (error) {
      if (error instanceof TooMuchWaiting) throw new Unavailable('too much code of this account is being fetched');
      if (error instanceof CallerGone) throw new TimedOut(`the code could not be fetched within ${FETCHED_WITHIN_MS} ms`);
      throw error;
    }
  }

  private async fetchNow(account: UserId, hash: string): Promise<KnownCode> {
    const { code, description, bundle } = await this.messages.request(getCode, { code_hash: hash }, { account: null, key: hash });
    const component = { hash, code, ...(bundle !== undefined && { packages: await unpackPackages(bundle) }) };
    this.pace.spend(account, sizeOf(component) / BYTES_PER_UNIT);
    for (const old of this.parts.add(account, hash, sizeOf(component))) this.cache.delete(old);
    this.cache.set(hash, { component, description, account });
    this.descriptions.set(hash, description);
    return { component, description };
  }
}

const sizeOf = ({ code, packages = '' }: ComponentCode): number => code.length + packages.length + 1000;

/** The code of each account in the cache: the sizes by hash, that of the code that was used last at the end. */
class Parts {
  private readonly parts = new Map<UserId, { bytes: number; sizes: Map<string, number> }>();

  /** Returns the hashes of the account that have to make room. */
  add(account: UserId, hash: string, bytes: number): string[] {
    const part = this.parts.get(account) ?? { bytes: 0, sizes: new Map<string, number>() };
    this.parts.set(account, part);
    part.sizes.set(hash, bytes);
    part.bytes += bytes;
    let left = part.bytes;
    const old: string[] = [];
    for (const [each, size] of part.sizes) {
      if (left <= MAX_ACCOUNT_BYTES || each === hash) break;
      old.push(each);
      left -= size;
    }
    return old;
  }

  use(account: UserId, hash: string): void {
    const sizes = this.parts.get(account)?.sizes;
    const size = sizes?.get(hash);
    if (!sizes || size === undefined) return;
    sizes.delete(hash);
    sizes.set(hash, size);
  }

  remove(account: UserId, hash: string): void {
    const part = this.parts.get(account);
    const size = part?.sizes.get(hash);
    if (!part || size === undefined) return;
    part.sizes.delete(hash);
    part.bytes -= size;
    if (part.sizes.size === 0) this.parts.delete(account);
  }
}
