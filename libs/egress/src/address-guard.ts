import { isIP } from 'node:net';
import { AllowedHosts, allowPrivateHosts, isOrdinaryPort } from './allowed-hosts.js';
import { withoutBrackets } from './ip-text.js';
import { NameLookup } from './name-lookup.js';
import { type OwnHosts, ownHosts } from './own-hosts.js';
import { isPublicAddress } from './public-address.js';

export interface ResolvedAddress {
  address: string;
  family: 4 | 6;
}

/** The allowed addresses: the first one to dial, and all of them (each one is checked) for a caller that tries the next. */
export interface Resolution extends ResolvedAddress {
  all: ResolvedAddress[];
}

export interface AddressGuardOptions {
  /** Resolves names; returns all addresses in the order to try them. Default: the hosts file, name servers, then the system (see `NameLookup`). */
  lookup?: (host: string) => Promise<{ address: string }[]>;
  /** Milliseconds after which a lookup has failed. Default 5000. */
  lookupMs?: number;
  /** Hosts that are refused even if the operator allows them. Default: the stores and services in this process's environment. */
  ownHosts?: Pick<OwnHosts, 'refuses' | 'isHere'>;
}

// One per process, because it limits the threads of the process
const defaultLookup = new NameLookup();

/** Of one name. Each is compared with all protected addresses, and a stranger's name server may return thousands. */
const usedAddresses = 16;

/** Of a public address of this machine: its web site is public as well. */
const WEB_PORTS = [80, 443];

const hostName = /^[\w.-]{1,253}$/;

/**
 * Decides which addresses outgoing connections may reach. It resolves a name once, and the caller dials the returned address: a name that
 * resolves differently the second time (DNS rebinding) gains nothing. A name is refused if any of its first 16 addresses is; the others are not used.
 */
export class AddressGuard {
  private readonly lookup: (host: string) => Promise<{ address: string }[]>;
  private readonly lookupMs: number;
  private readonly ownHosts: Pick<OwnHosts, 'refuses' | 'isHere'>;
  private readonly lookups = new Map<string, Promise<{ address: string }[]>>();

  constructor(
    private readonly allowed: AllowedHosts,
    options: AddressGuardOptions = {},
  ) {
    this.lookup = options.lookup ?? ((host) => defaultLookup.lookup(host));
    this.lookupMs = options.lookupMs ?? 5000;
    this.ownHosts = options.ownHosts ?? ownHosts();
  }

  /** @param allowPrivateHosts CIDRs, addresses and host names, each optionally with `:port`, separated by commas (`SLUICE_ALLOW_PRIVATE_HOSTS`) */
  static fromConfig(allowPrivateHosts: string, options: AddressGuardOptions = {}): AddressGuard {
    return new AddressGuard(new AllowedHosts(allowPrivateHosts), options);
  }

  /**
   * @param host a name, an IPv4 address or an IPv6 address with or without brackets
   * @throws EgressRefused
   */
  async resolve(host: string, port: number): Promise<Resolution> {
    if (!Number.isInteger(port) || port < 1 || port > 65535) throw new EgressRefused('EPROTO', `${port} is not a port`);
    const name = withoutBrackets(host).toLowerCase();
    if (isIP(name) === 0 && !hostName.test(name)) throw new EgressRefused('EPROTO', `"${host.slice(0, 253)}" is not a host name`);

    const addresses = isIP(name) === 0 ? await this.addressesOf(name) : [{ address: name }];
    const byName = this.allowed.allowsName(name.replace(/\.$/, ''), port);
    for (const { address } of addresses) {
      if (await this.ownHosts.refuses(address, port)) throw new EgressRefused('EACCES', ownHostProblem(name, port));
      const problem = await this.problemOf(name, address, port, byName);
      if (problem !== null) throw new EgressRefused('EACCES', problem);
    }
    const all = addresses.map(({ address }): ResolvedAddress => ({ address, family: isIP(address) === 6 ? 6 : 4 }));
    return { ...all[0]!, all };
  }

  /**
   * Why a literal address may not be called, or null. A name has to be resolved first: null.
   * @param host as `URL.hostname` writes it, which knows every spelling of an address
   */
  async literalProblem(host: string, port: number): Promise<string | null> {
    const address = withoutBrackets(host);
    if (isIP(address) === 0) return null;
    if (await this.ownHosts.refuses(address, port)) return ownHostProblem(address, port);
    const problem = await this.problemOf(address, address, port, this.allowed.allowsName(address, port));
    return problem && `${problem}; ${allowPrivateHosts.name} lists exceptions`;
  }

  private async problemOf(name: string, address: string, port: number, allowedByName: boolean): Promise<string | null> {
    if (allowedByName || this.allowed.allowsAddress(address, port)) return null;
    const isListed = this.allowed.allowsName(name, 443) || this.allowed.allowsAddress(address, 443);
    const portProblem = `${name}:${port} may not be called: the port is not allowed`;
    if (!isPublicAddress(address)) return isListed ? portProblem : `${name} may not be called: it is not a public address`;
    if (!isOrdinaryPort(port)) return portProblem;
    // a firewall does not see connections of this machine to itself
    return !WEB_PORTS.includes(port) && (await this.ownHosts.isHere(address)) ? portProblem : null;
  }

  private async addressesOf(name: string): Promise<{ address: string }[]> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new EgressRefused('ETIMEDOUT', `${name} could not be resolved within ${this.lookupMs} ms`)),
        this.lookupMs,
      );
    });
    try {
      const addresses = (await Promise.race([this.lookupOnce(name), late])).slice(0, usedAddresses);
      if (addresses.length === 0) throw new EgressRefused('ENOTFOUND', `${name} could not be resolved`);
      return addresses;
    } catch (error) {
      throw error instanceof EgressRefused ? error : new EgressRefused('ENOTFOUND', `${name} could not be resolved`);
    } finally {
      clearTimeout(timer);
    }
  }

  /** A hundred concurrent calls to one name cause one lookup. */
  private lookupOnce(name: string): Promise<{ address: string }[]> {
    const running = this.lookups.get(name);
    if (running) return running;
    const lookup = this.lookup(name).finally(() => this.lookups.delete(name));
    this.lookups.set(name, lookup);
    return lookup;
  }
}

/** Users try to chain sources by their endpoints, so it says what to do instead. */
const ownHostProblem = (name: string, port: number): string =>
  `${name}:${port} may not be called: it is Sluice itself, whatever ${allowPrivateHosts.name} lists; ` +
  'to send events to a source, subscribe the source instead of calling its endpoint';

/**
 * Why a connection was refused: `EACCES` the address or port is not allowed, `ENOTFOUND` the name is unknown, `ETIMEDOUT` the name server did not
 * respond, `EPROTO` the target is not a host and port.
 */
type EgressRefusedCode = 'EACCES' | 'ENOTFOUND' | 'ETIMEDOUT' | 'EPROTO';

/**
 * Thrown instead of connecting. The message is for the user who wrote the URL: it repeats their text and never reveals the address of
 * a name, which would let them map our network.
 */
export class EgressRefused extends Error {
  override readonly name = 'EgressRefused';

  constructor(
    readonly code: EgressRefusedCode,
    message: string,
  ) {
    super(message);
  }
}
