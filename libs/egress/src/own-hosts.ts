import { BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { BadValue, Config, storeVariables, variable } from '#config';
import { familyOf, withoutBrackets } from './ip-text.js';
import { isUnknown, NameLookup } from './name-lookup.js';
import { isPublicAddress } from './public-address.js';

/** A host of this installation: one of its stores or services. */
export interface OwnHost {
  /** A name, an IPv4 address or an IPv6 address without brackets. */
  host: string;
  /** null: every port. */
  port: number | null;
  /** A store on another machine is protected on every port, because it may also run a controller or an agent. */
  isStore: boolean;
}

interface OwnHostsOptions {
  lookup?: (host: string) => Promise<{ address: string }[]>;
  /** The addresses of this machine, in addition to the loopback addresses. */
  ownAddresses?: () => string[];
}

export const protectedHosts = variable('SLUICE_PROTECTED_HOSTS', {
  fallback: '',
  description:
    'Hosts that webhooks and components must never call, whatever `SLUICE_ALLOW_PRIVATE_HOSTS` lists: names and addresses, each optionally with ' +
    '`:port`, separated by commas. For your own services, and for Kafka controllers on separate machines. The database and all brokers of ' +
    'the cluster are always protected. `npm start` and Compose add their services.',
  parse: (value) =>
    value
      .split(',')
      .map((entry) => entry.trim())
      .filter((entry) => entry !== '')
      .map((entry): OwnHost => ({ ...hostAndPort(entry), isStore: false })),
});

class OwnHostsConfig extends Config({
  brokers: storeVariables.kafkaBrokers,
  databaseUrl: { ...storeVariables.databaseUrl, fallback: 'postgres:' },
  protectedHosts,
}) {}

// Pods and containers get new addresses when they are replaced
const freshMs = 10_000;
const lookupMs = 2_000;

/**
 * The hosts that no connection on behalf of a user may reach, whatever the operator allows: brokers, database, services.
 *
 *   another machine   a store is refused on every port, a service on the ports named, or on all
 *   this machine      may also run users' servers: only our ports are refused, on each of the machine's addresses
 *
 * The ports of stores are refused on every private address, because a broker or a database may have more addresses than we know.
 */
export class OwnHosts {
  private readonly sources = new Map<string, OwnHost[]>();
  /** By host; none for a name that does not exist. Names that no name server has responded about are missing. */
  private readonly addresses = new Map<string, { all: string[]; list: BlockList }>();
  private readonly lookup: (host: string) => Promise<{ address: string }[]>;
  private readonly ownAddresses: () => string[];
  private thisMachine = new BlockList();
  private freshUntil = 0;
  private refreshing: Promise<void> | null = null;

  constructor(hosts: OwnHost[], { lookup, ownAddresses }: OwnHostsOptions = {}) {
    const names = new NameLookup();
    this.lookup = lookup ?? ((host) => names.lookup(host));
    this.ownAddresses = ownAddresses ?? addressesOfThisMachine;
    this.sources.set('configuration', hosts);
  }

  static fromEnvironment(env: Record<string, string | undefined> = process.env, options?: OwnHostsOptions): OwnHosts {
    const { brokers, databaseUrl, protectedHosts } = OwnHostsConfig.read(env);
    const stores = [...brokers.map(hostAndPort), ...databaseHost(databaseUrl)];
    return new OwnHosts([...stores.map((store) => ({ ...store, isStore: true })), ...protectedHosts], options);
  }

  /** Protects the brokers in the metadata of the cluster; replaces the previous list. */
  setClusterBrokers(brokers: { host: string; port: number }[]): void {
    this.sources.set(
      'cluster',
      brokers.map(({ host, port }) => ({ host, port, isStore: true })),
    );
    this.freshUntil = 0;
  }

  /** Whether a connection to this address must be refused. @param address IPv4 or IPv6, without brackets */
  async refuses(address: string, port: number): Promise<boolean> {
    await this.refresh();
    const family = familyOf(address);
    const isHere = this.thisMachine.check(address, family);
    // it may be the address of a host that is not resolved yet
    if (!this.isResolved() && !isPublicAddress(address)) return true;
    return this.hosts().some((own) => {
      if (own.isStore && own.port === port && (isHere || !isPublicAddress(address))) return true;
      const addresses = this.addresses.get(own.host);
      if (!addresses) return false;
      if (isHere && addresses.all.some((each) => this.thisMachine.check(each, familyOf(each))))
        return own.port === port || own.port === null;
      return addresses.list.check(address, family) && (own.isStore || own.port === null || own.port === port);
    });
  }

  /** Whether it is an address of this machine. @param address IPv4 or IPv6, without brackets */
  async isHere(address: string): Promise<boolean> {
    await this.refresh();
    return this.thisMachine.check(address, familyOf(address));
  }

  private hosts(): OwnHost[] {
    return [...this.sources.values()].flat();
  }

  private isResolved(): boolean {
    return this.hosts().every(({ host }) => this.addresses.has(host));
  }

  /** A name that cannot be resolved keeps its previous addresses: the outage of a name server must not open anything. */
  private async refresh(): Promise<void> {
    const isFresh = performance.now() < this.freshUntil;
    if (isFresh && (!this.refreshing || this.isResolved())) return;
    await (this.refreshing ??= this.resolveAll().finally(() => (this.refreshing = null)));
  }

  private async resolveAll(): Promise<void> {
    // Set first: hosts that are added meanwhile must be looked up, too
    this.freshUntil = performance.now() + freshMs;
    const machine = new BlockList();
    for (const [net, bits] of [['127.0.0.0', 8] as const, ['0.0.0.0', 8] as const]) machine.addSubnet(net, bits, 'ipv4');
    for (const address of ['::', '::1', ...this.ownAddresses()]) machine.addAddress(address, familyOf(address));
    this.thisMachine = machine;
    const hosts = new Set(this.hosts().map(({ host }) => host));
    const all = Promise.all([...hosts].map((host) => this.resolve(host)));
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([all, new Promise((resolve) => (timer = setTimeout(resolve, lookupMs)))]);
    clearTimeout(timer);
  }

  private async resolve(host: string): Promise<void> {
    try {
      const found = isIP(host) === 0 ? await this.lookup(host) : [{ address: host }];
      const all = found.map(({ address }) => address);
      this.addresses.set(host, { all, list: blockListOf(all) });
    } catch (error) {
      if (isUnknown(error) && !this.addresses.has(host)) this.addresses.set(host, { all: [], list: new BlockList() });
    }
  }
}

let ofThisProcess: OwnHosts | undefined;

/** The own hosts of this process, from its environment and from the metadata of the cluster. */
export const ownHosts = (): OwnHosts => (ofThisProcess ??= OwnHosts.fromEnvironment());

function addressesOfThisMachine(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address.replace(/%.*$/, '')));
}

/** Also recognises an IPv4 address that is written as an IPv6 address. */
function blockListOf(addresses: string[]): BlockList {
  const list = new BlockList();
  for (const address of addresses) list.addAddress(address, familyOf(address));
  return list;
}

function databaseHost(databaseUrl: string): { host: string; port: number }[] {
  if (databaseUrl === 'postgres:') return [];
  const url = new URL(databaseUrl);
  const host = url.searchParams.get('host') ?? url.hostname;
  const port = Number(url.searchParams.get('port') ?? url.port) || 5432;
  // The folder of a Unix socket is not a host
  return host === '' || host.startsWith('/') || host.startsWith('%2F') ? [] : [{ host: withoutBrackets(host), port }];
}

function hostAndPort(entry: string): { host: string; port: number | null } {
  if (isIP(entry) === 6) return { host: entry, port: null };
  // no name begins with a dash, and none is a pattern
  const [, host, port] = /^(\[[\da-f:.]+\]|(?!-)[\w.-]+)(?::(\d{1,5}))?$/i.exec(entry) ?? [];
  if (host === undefined || Number(port ?? 1) < 1 || Number(port ?? 1) > 65_535)
    throw new BadValue(`cannot be used: "${entry}" is not an address or host name (each optionally followed by :port)`);
  return { host: withoutBrackets(host), port: port === undefined ? null : Number(port) };
}
