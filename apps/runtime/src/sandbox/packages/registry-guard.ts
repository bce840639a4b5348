import { AddressGuard, EgressRefused, type Resolution } from '#egress';

/** Lets an installation connect to the registries that npm is configured for and to nothing else; they may have private addresses. */
export class RegistryGuard implements Pick<AddressGuard, 'resolve'> {
  private readonly guard: AddressGuard;

  constructor(private readonly hosts: { host: string; port: number }[]) {
    this.guard = AddressGuard.fromConfig(
      hosts.map(({ host, port }) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`)).join(','),
    );
  }

  /** @throws EgressRefused */
  async resolve(host: string, port: number): Promise<Resolution> {
    const name = host.replace(/^\[|\]$/g, '').toLowerCase();
    if (!this.hosts.some((each) => each.host === name && each.port === port))
      throw new EgressRefused('EACCES', `${name} is not the registry`);
    return this.guard.resolve(host, port);
  }
}
