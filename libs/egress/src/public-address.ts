import { BlockList, isIPv4, isIPv6 } from 'node:net';

// IANA special-purpose registry, and one address that no registry lists: 168.63.129.16 is the host agent of Azure's machines.
const refusedIPv4 = subnets('ipv4', [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]);

// For IPv6 the list is inverted: only global unicast is public. So mapped, NAT64, unique local and link-local addresses, and future
// assignments, are refused without being listed. The second list excludes parts of global unicast that lead elsewhere (Teredo, 6to4, …).
const globalUnicast = subnets('ipv6', ['2000::/3']);
const refusedIPv6 = subnets('ipv6', ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3ffe::/16', '3fff::/20']);

/** Whether an address (as text, without brackets or zone) is reachable from the internet. False for text that is not an IP address. */
export function isPublicAddress(ip: string): boolean {
  if (isIPv4(ip)) return !refusedIPv4.check(ip, 'ipv4');
  if (!isIPv6(ip) || ip.includes('%')) return false;
  return globalUnicast.check(ip, 'ipv6') && !refusedIPv6.check(ip, 'ipv6');
}

function subnets(family: 'ipv4' | 'ipv6', cidrs: string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [net, prefix] = cidr.split('/') as [string, string];
    list.addSubnet(net, Number(prefix), family);
  }
  return list;
}
