import { lookup, Resolver } from 'node:dns/promises';
import { readFileSync, statSync } from 'node:fs';

export interface Addresses {
  address: string;
}

/** The two ways to resolve a name; tests replace them. */
export interface NameSources {
  /** Queries name servers without using a thread */
  resolve4(name: string): Promise<string[]>;
  resolve6(name: string): Promise<string[]>;
  /** Resolves like the system: files, search domains, plug-ins. Occupies one of the few threads of the process until it is done */
  system(name: string): Promise<Addresses[]>;
  /** Names in the hosts file */
  local(): ReadonlySet<string>;
}

const localLookupsAtATime = 2;
const unknownLookupsAtATime = 1;
/** Callers wait no longer than this for a result, so a lookup whose turn comes later is skipped. */
const patienceMs = 5000;

/**
 * Resolves names for connections on behalf of users. The system's resolver occupies one of four threads while a name server does not respond, and
 * anyone can run such a name server: four names would block every lookup and every file operation of the process. So this class queries the name
 * servers directly, and leaves only names that they do not know to the system: local ones (`localhost`, the hosts file, names without a dot) two at a
 * time, and others (search domains) one at a time, because their name server may be a stranger's.
 */
export class NameLookup {
  private readonly local = new Lane(localLookupsAtATime);
  private readonly unknown = new Lane(unknownLookupsAtATime);

  constructor(private readonly sources: NameSources = systemSources()) {}

  /** All addresses, IPv4 first. @throws if there are none */
  async lookup(name: string): Promise<Addresses[]> {
    if (!name.replace(/\.$/, '').includes('.') || this.sources.local().has(name)) return this.local.run(() => this.sources.system(name));
    const answers = await Promise.allSettled([this.sources.resolve4(name), this.sources.resolve6(name)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length > 0) return addresses.map((address) => ({ address }));
    const late = answers.find((answer) => answer.status === 'rejected' && !isUnknown(answer.reason));
    if (late) throw (late as PromiseRejectedResult).reason;
    return this.unknown.run(() => this.sources.system(name));
  }
}

/** Limits how many lookups run at a time; the others wait in order. */
class Lane {
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

function isUnknown(error: unknown): boolean {
  return ['ENOTFOUND', 'ENODATA', 'EBADNAME'].includes((error as NodeJS.ErrnoException).code ?? '');
}

function systemSources(): NameSources {
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  const hosts = new HostsFile('/etc/hosts');
  return {
    resolve4: (name) => resolver.resolve4(name),
    resolve6: (name) => resolver.resolve6(name),
    system: (name) => lookup(name, { all: true, verbatim: true }),
    local: () => hosts.names(),
  };
}

/** The names of a hosts file, read again when the file changes. */
class HostsFile {
  private readAt = -1;
  private read = new Set<string>();

  constructor(private readonly path: string) {}

  names(): ReadonlySet<string> {
    const changedAt = statSync(this.path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (changedAt !== this.readAt) {
      this.readAt = changedAt;
      this.read = new Set(changedAt === 0 ? [] : namesIn(readFileSync(this.path, 'utf8')));
    }
    return this.read;
  }
}

function namesIn(hosts: string): string[] {
  return hosts.split('\n').flatMap((line) => line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/).slice(1));
}
