import { isIP } from 'node:net';

/** An IPv6 address has brackets in URLs. */
export const withoutBrackets = (host: string): string => host.replace(/^\[(.*)\]$/, '$1');

/** As a BlockList takes it. */
export const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');
