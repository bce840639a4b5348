import { BlockList, isIP, isIPv6 } from 'node:net';
import { BadValue, variable } from '#config';
import { familyOf } from './ip-text.js';

/** `harmless`: all but those of services that need no password, or may have none. */
type Port = number | 'any' | 'harmless';

interface NameRule {
  name: string;
  port: Port;
}

interface AddressRule {
  addresses: BlockList;
  port: Port;
}

// Shells, mail, file shares, stores and orchestrators, which an HTTP request can abuse if they need no password.
const refusedPorts = new Set([22, 23, 25, 111, 139, 445, 2375, 2376, 2379, 3306, 5432, 5672, 6379, 6443, 9092, 9200, 10250, 11211, 27017]);

/** A port on which strangers may call public addresses: neither one of the system, except HTTP's, nor of a well-known store or orchestrator. */
export function isOrdinaryPort(port: number): boolean {
  return port === 80 || port === 443 || (port >= 1024 && !refusedPorts.has(port));
}

/** The operator's exceptions to "public addresses only", from `SLUICE_ALLOW_PRIVATE_HOSTS`. */
export class AllowedHosts {
  private readonly names: NameRule[] = [];
  private readonly addresses: AddressRule[] = [];

  /** @throws Error that names the entry which cannot be read */
  constructor(list: string) {
    for (const entry of list.split(',').map((text) => text.trim())) if (entry) this.add(entry);
  }

  allowsName(name: string, port: number): boolean {
    return this.names.some((rule) => rule.name === name && portFits(rule, port));
  }

  allowsAddress(address: string, port: number): boolean {
    const family = familyOf(address);
    return this.addresses.some((rule) => portFits(rule, port) && rule.addresses.check(address, family));
  }

  private add(entry: string): void {
    const { host, port } = splitPort(entry);
    const [address, prefix, ...rest] = host.split('/') as [string, string?];
    if (isIP(address) === 0) {
      if (prefix !== undefined || !/^[a-z0-9_]([\w.-]*[a-z0-9])?$/i.test(host)) throw unreadable(entry);
      this.names.push({ name: host.toLowerCase(), port });
      return;
    }
    const family = familyOf(address);
    const most = family === 'ipv6' ? 128 : 32;
    const bits = prefix === undefined ? most : Number(prefix);
    if (rest.length > 0 || (prefix !== undefined && !/^\d{1,3}$/.test(prefix)) || bits > most) throw unreadable(entry);
    const addresses = new BlockList();
    addresses.addSubnet(address, bits, family);
    this.addresses.push({ addresses, port });
  }
}

function portFits(rule: { port: Port }, port: number): boolean {
  if (rule.port === 'harmless') return !refusedPorts.has(port);
  return rule.port === 'any' || rule.port === port;
}

/** `host:port`, `host:*`, `[v6]:port`, `[v6]`, or without a port; a bare IPv6 address or network contains colons and takes no port. */
function splitPort(entry: string): { host: string; port: Port } {
  const bracketed = /^\[([^\]]+)\](\/\d+)?(?::(\d+|\*))?$/.exec(entry);
  if (bracketed) return { host: bracketed[1]! + (bracketed[2] ?? ''), port: readPort(bracketed[3], entry) };
  if (isIPv6(entry.split('/')[0]!)) return { host: entry, port: 'harmless' };
  const colon = entry.lastIndexOf(':');
  if (colon < 0) return { host: entry, port: 'harmless' };
  return { host: entry.slice(0, colon), port: readPort(entry.slice(colon + 1), entry) };
}

function readPort(text: string | undefined, entry: string): Port {
  if (text === undefined) return 'harmless';
  if (text === '*') return 'any';
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65535) throw unreadable(entry);
  return port;
}

function unreadable(entry: string): Error {
  return new Error(`"${entry}" is not a CIDR, address or host name (each optionally followed by :port)`);
}

/** The same variable for every service that connects to users' hosts. */
export const allowPrivateHosts = variable('SLUICE_ALLOW_PRIVATE_HOSTS', {
  fallback: '',
  description:
    'Private hosts that webhooks and components may call, and public addresses of this machine, of which only the ports 80 and 443 are open ' +
    'otherwise: addresses, networks (CIDR) and names, each optionally with `:port` ' +
    '(`127.0.0.1:6379`; `localhost:*` for every port), separated by commas. Without a port, those of shells, mail and well-known stores ' +
    'and orchestrators stay closed, such as 22, 5432, 6379 and 2375. `npm start` sets it to the loopback addresses. The stores and services of Sluice stay ' +
    'out of reach.',
  parse: (value) => {
    try {
      new AllowedHosts(value);
      return value;
    } catch (error) {
      throw new BadValue(`cannot be used: ${(error as Error).message}`);
    }
  },
});
