import { afterAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseHosts, parseSearchList, systemHosts, systemResolver } from './resolver-files.js';

const folder = mkdtempSync(join(tmpdir(), 'sluice-hosts-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('the hosts file', () => {
  it('has the addresses of all lines of a name, IPv4 first', () => {
    const hosts = parseHosts(`
# a comment
::1        localhost ip6-localhost
127.0.0.1  localhost   # another
fe80::1%lo0 localhost
127.0.1.1  Machine.corp machine
127.0.0.1  localhost localhost
not-an-address name
10.0.0.1
`);
    expect(Object.fromEntries(hosts)).toEqual({
      localhost: ['127.0.0.1', '::1'],
      'ip6-localhost': ['::1'],
      'machine.corp': ['127.0.1.1'],
      machine: ['127.0.1.1'],
    });
  });

  it('is read again when it has changed, and is empty while it does not exist', () => {
    const path = join(folder, 'hosts');
    const addressesOf = systemHosts(path);
    expect(addressesOf('one')).toEqual([]);
    writeFileSync(path, '10.0.0.1 one');
    utimesSync(path, 1, 1);
    expect(addressesOf('one')).toEqual(['10.0.0.1']);
    writeFileSync(path, '10.0.0.2 one');
    utimesSync(path, 2, 2);
    expect(addressesOf('one')).toEqual(['10.0.0.2']);
    rmSync(path);
    expect(addressesOf('one')).toEqual([]);
  });
});

describe('the search list', () => {
  it.each([
    ['', [], true],
    [
      'nameserver 10.0.0.10\nsearch ns.svc.cluster.local svc.cluster.local. cluster.local\noptions ndots:5',
      ['ns.svc.cluster.local', 'svc.cluster.local', 'cluster.local'],
      true,
    ],
    ['domain one.example\nsearch two.example # three.example', ['two.example'], true],
    ['search .\noptions edns0 ndots:0', [], false],
    ['; search one.example', [], true],
  ])('the search list of %j is read', (text, domains, singleLabelsFirst) =>
    expect(parseSearchList(text)).toEqual({ domains, singleLabelsFirst }),
  );
});

it('the resolver is made again when the list of name servers has changed, because it reads that list when it is made', () => {
  const path = join(folder, 'resolv.conf');
  const resolver = systemResolver(path);
  const first = resolver();
  expect(resolver()).toBe(first);
  writeFileSync(path, 'nameserver 10.0.0.10');
  expect(resolver()).not.toBe(first);
  expect(resolver()).toBe(resolver());
});
