import { lookup } from 'node:dns/promises';
import { LRUCache } from 'lru-cache';
import { type SearchList, systemHosts, systemResolver, systemSearchList } from './resolver-files.js';

export interface Addresses {
  address: string;
}

/** The ways to resolve a name; tests replace them. */
export interface NameSources {
  /** The addresses of a name in the hosts file, IPv4 first. */
  hosts(name: string): readonly string[];
  /** The settings of the resolver for names that are not complete. */
  search(): SearchList;
  /** Queries name servers without using a thread */
  resolve4(name: string): Promise<string[]>;
  resolve6(name: string): Promise<string[]>;
  /** Resolves like the system, with its plug-ins. Occupies one of the few threads of the process until it is done */
  system(name: string): Promise<Addresses[]>;
}

const localLookupsAtATime = 2;
const unknownLookupsAtATime = 1;
/** Callers wait no longer than this for a result, so a lookup whose turn comes later is skipped. */
const patienceMs = 5000;
/**
 * How long one family of addresses waits for the other (RFC 8305, section 3): some name servers never respond to queries for IPv6. Longer than the RFC has it,
 * because addresses that come later are not used: a packet that is lost is sent again after two seconds.
 */
const resolutionDelayMs = 2500;
/** A name that does not exist is not looked up again for this time. */
const notFoundMs = 5000;

/**
 * Resolves names for connections on behalf of users. The system's resolver occupies one of four threads while a name server does not respond, and
 * anyone can run such a name server: four names would block every lookup and every file operation of the process. So this class does itself what the
 * system does, without a thread:
 *
 *   name ─► hosts file ─► not found a moment ago? ─► name servers, with the search domains ─► the system, in a lane
 *
 * Only names that exist nowhere, or that only a plug-in of the system knows (such as mDNS), wait for a lane: those without a dot two at a time, and
 * others one at a time, because their name server may be a stranger's. An account that fills the lanes with names that do not exist delays no names
 * that do. The lanes know no accounts, because accounts share the connections to a host.
 */
export class NameLookup {
  private readonly local = new Limit(localLookupsAtATime);
  private readonly unknown = new Limit(unknownLookupsAtATime);
  /** Names that do not exist. */
  private readonly notFound = new LRUCache<string, { error: Error; until: number }>({ max: 10_000 });

  constructor(private readonly sources: NameSources = systemSources()) {}

  /** All addresses, IPv4 first. @throws if there are none */
  async lookup(name: string): Promise<Addresses[]> {
    const local = this.sources.hosts(name.replace(/\.$/, '').toLowerCase());
    if (local.length > 0) return local.map((address) => ({ address }));
    const failed = this.notFound.get(name);
    if (failed && performance.now() < failed.until) throw failed.error;
    try {
      return await this.resolve(name);
    } catch (error) {
      if (isUnknown(error)) this.notFound.set(name, { error: error as Error, until: performance.now() + notFoundMs });
      throw error;
    }
  }

  private async resolve(name: string): Promise<Addresses[]> {
    const isLocal = isSingleLabel(name);
    for (const names of this.candidates(name)) {
      const { addresses, error } = await this.firstOf(names);
      if (addresses.length > 0) return addresses.map((address) => ({ address }));
      // the system would wait for a stranger's name server, too
      if (error && !isLocal) throw error;
    }
    return (isLocal ? this.local : this.unknown).run(() => this.sources.system(name));
  }

  /** The complete names that a name may denote, in groups that are queried one after another. */
  private candidates(name: string): string[][] {
    if (name.endsWith('.')) return [[name]];
    const { domains, singleLabelsFirst } = this.sources.search();
    const searched = domains.map((domain) => `${name}.${domain}`);
    return isSingleLabel(name) && singleLabelsFirst ? [searched, [name]] : [[name], searched];
  }

  /** The result of the first of these names that has addresses. */
  private async firstOf(names: string[]): Promise<Queried> {
    let late: Error | undefined;
    for (const answer of names.map((name) => this.query(name))) {
      const { addresses, error } = await answer;
      if (addresses.length > 0) return { addresses };
      late ??= error;
    }
    return { addresses: [], error: late };
  }

  private async query(name: string): Promise<Queried> {
    const [queried4, queried6] = [this.sources.resolve4(name), this.sources.resolve6(name)];
    const answers = await Promise.allSettled([notMuchLater(queried4, queried6), notMuchLater(queried6, queried4)]);
    const failed = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason as Error] : []));
    return {
      addresses: answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : [])),
      error: failed.find((error) => !isUnknown(error)),
    };
  }
}

/** The result of a query, or nothing if the query for the other family has succeeded a while ago. */
function notMuchLater(query: Promise<string[]>, other: Promise<string[]>): Promise<string[]> {
  const late = () => new Promise<string[]>((resolve) => setTimeout(resolve, resolutionDelayMs, []).unref());
  return Promise.race([query, other.then(late, () => query)]);
}

/** The result of name servers. */
interface Queried {
  /** IPv4 first. */
  addresses: string[];
  /** A name server did not respond. */
  error?: Error;
}

const isSingleLabel = (name: string): boolean => !name.replace(/\.$/, '').includes('.');

/** Limits how many lookups run at a time; the others wait in order. */
class Limit {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly atATime: number) {}

  async run<T>(lookup: () => Promise<T>): Promise<T> {
    const until = performance.now() + patienceMs;
    if (this.running >= this.atATime) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.running++;
    try {
      if (performance.now() > until) throw Object.assign(new Error('too many names are being resolved'), { code: 'ETIMEOUT' });
      return await lookup();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.running--;
    }
  }
}

/** Whether a name server responded that the name has no addresses. */
export function isUnknown(error: unknown): boolean {
  return ['ENOTFOUND', 'ENODATA', 'EBADNAME'].includes((error as NodeJS.ErrnoException).code ?? '');
}

function systemSources(): NameSources {
  const resolver = systemResolver();
  return {
    ...{ hosts: systemHosts(), search: systemSearchList() },
    resolve4: (name) => resolver().resolve4(name),
    resolve6: (name) => resolver().resolve6(name),
    system: (name) => lookup(name, { all: true, verbatim: true }),
  };
}
