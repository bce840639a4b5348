import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { AddressGuard } from './address-guard.js';
import { OwnHosts } from './own-hosts.js';

const names: Record<string, string[]> = {
  localhost: ['127.0.0.1', '::1'],
  kafka: ['172.18.0.2'],
  'kafka-2': ['172.18.0.3'],
  postgres: ['172.18.0.4', 'fd00::4'],
  'managed.example': ['93.184.216.34'],
  gateway: ['172.18.0.5'],
  controller: ['172.18.0.6'],
  runtime: ['172.18.0.9'],
  'moved.test': ['172.18.0.7'],
};

async function tableLookup(host: string): Promise<{ address: string }[]> {
  const found = names[host];
  if (!found) throw new Error('ENOTFOUND');
  return found.map((address) => ({ address }));
}

const ofMachine = { lookup: tableLookup, ownAddresses: () => ['172.18.0.9', '192.168.1.9'] };

const everything = '0.0.0.0/0:*,[::]/0:*';
const guardOf = (env: Record<string, string>, allowed = everything) =>
  AddressGuard.fromConfig(allowed, { lookup: tableLookup, ownHosts: OwnHosts.fromEnvironment(env, ofMachine) });

async function ask(guard: AddressGuard, target: string): Promise<string> {
  const colon = target.lastIndexOf(':');
  return guard.resolve(target.slice(0, colon), Number(target.slice(colon + 1))).then(
    () => 'allowed',
    ({ code, message }: { code: string; message: string }) => (message.includes('may not be called') ? 'refused' : code),
  );
}

const containers = {
  KAFKA_BROKERS: 'kafka:19092',
  DATABASE_URL: 'postgres://u@postgres/postgres',
  SLUICE_PROTECTED_HOSTS: 'gateway, runtime ,controller:9093',
};
const onThisMachine = {
  KAFKA_BROKERS: '127.0.0.1:19092',
  DATABASE_URL: 'postgres://u@localhost:5433/postgres',
  SLUICE_PROTECTED_HOSTS: '127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:3000',
};

describe('a guard that allows every address', () => {
  it.each([
    ['kafka:19092', 'refused'],
    ['kafka:9092', 'refused'],
    ['kafka:9093', 'refused'],
    ['KAFKA:9093', 'refused'],
    ['172.18.0.2:80', 'refused'],
    ['[::ffff:172.18.0.2]:9093', 'refused'],
    ['postgres:5432', 'refused'],
    ['postgres:8008', 'refused'],
    ['[fd00::4]:8008', 'refused'],
    ['172.18.0.200:19092', 'refused'],
    ['gateway:3000', 'refused'],
    ['gateway:8080', 'refused'],
    ['controller:9093', 'refused'],
    ['controller:80', 'allowed'],
    ['runtime:4000', 'refused'],
    ['127.0.0.1:4000', 'refused'],
    ['172.18.0.8:9092', 'allowed'],
    ['192.168.7.7:3000', 'allowed'],
  ])('decides in containers that %s is %s', async (target, outcome) => {
    expect(await ask(guardOf(containers), target)).toBe(outcome);
  });

  it.each([
    ['127.0.0.1:19092', 'refused'],
    ['127.0.0.1:9093', 'refused'],
    ['127.0.0.2:9093', 'refused'],
    ['0.0.0.0:9093', 'refused'],
    ['localhost:9093', 'refused'],
    ['[::1]:9093', 'refused'],
    ['[::ffff:127.0.0.1]:9093', 'refused'],
    ['192.168.1.9:9093', 'refused'],
    ['127.0.0.1:5433', 'refused'],
    ['[::1]:3000', 'refused'],
    ['192.168.1.9:3000', 'refused'],
    ['127.0.0.1:4000', 'allowed'],
    ['192.168.1.9:4000', 'allowed'],
    ['192.168.1.10:3000', 'allowed'],
    ['10.0.0.1:5433', 'refused'],
  ])('decides with everything on this machine that %s is %s', async (target, outcome) => {
    expect(await ask(guardOf(onThisMachine), target)).toBe(outcome);
  });

  it.each([
    ['a broker on a public address', { KAFKA_BROKERS: 'managed.example:9092' }, 'managed.example:443', 'refused'],
    ['the default broker', {}, '127.0.0.1:9092', 'refused'],
    ['the default broker, where there is none of these', {}, 'kafka:9092', 'refused'],
    ['the host parameter of the database', { DATABASE_URL: 'postgres://u@x/p?host=postgres' }, 'postgres:22', 'refused'],
    ['the folder of a unix socket', { DATABASE_URL: 'postgres://u@localhost/p?host=/run/postgresql' }, 'kafka-2:22', 'allowed'],
  ])('refuses %s', async (_, env, target, outcome) => {
    expect(await ask(guardOf(env), target)).toBe(outcome);
  });
});

describe('the own hosts', () => {
  it('include the brokers in the metadata of the cluster', async () => {
    const hosts = OwnHosts.fromEnvironment({ KAFKA_BROKERS: 'kafka:9092' }, ofMachine);
    expect(await hosts.refuses('172.18.0.3', 9093)).toBe(false);
    hosts.setClusterBrokers([{ host: 'kafka-2', port: 9092 }]);
    expect(await hosts.refuses('172.18.0.3', 9093)).toBe(true);
    expect(await hosts.refuses('172.18.0.2', 9093)).toBe(true);
  });

  it('keep their addresses while their names cannot be resolved', async () => {
    let away = false;
    const lookup = async (host: string) => (away ? Promise.reject(new Error('ENOTFOUND')) : tableLookup(host));
    const hosts = OwnHosts.fromEnvironment({ KAFKA_BROKERS: 'moved.test:9092' }, { ...ofMachine, lookup });
    expect(await hosts.refuses('172.18.0.7', 1)).toBe(true);
    away = true;
    hosts.setClusterBrokers([]);
    expect(await hosts.refuses('172.18.0.7', 1)).toBe(true);
  });

  describe('if a name is not resolved yet', () => {
    const hostsWith = (lookup: (host: string) => Promise<{ address: string }[]>) =>
      OwnHosts.fromEnvironment({ SLUICE_PROTECTED_HOSTS: 'gateway:3000' }, { ...ofMachine, lookup });

    it('are the same for all callers that ask at the same time', async () => {
      const hosts = hostsWith(async (host) => sleep(20).then(() => tableLookup(host)));
      const asked = [1, 2, 3].flatMap(() => [hosts.refuses('172.18.0.5', 3000), hosts.refuses('172.18.0.8', 3000)]);
      expect(await Promise.all(asked)).toEqual([true, false, true, false, true, false]);
    });

    it.each([
      ['and no name server responds, every private address is', 'ETIMEOUT', ['172.18.0.8', '127.0.0.1'], true],
      ['and no name server responds, no public address is', 'ETIMEOUT', ['93.184.216.34'], false],
      ['because it does not exist, no address is', 'ENOTFOUND', ['172.18.0.8', '93.184.216.34'], false],
    ])('%s refused', async (_, code, addresses, expected) => {
      const hosts = hostsWith(() => Promise.reject(Object.assign(new Error(code), { code })));
      for (const address of addresses) expect(await hosts.refuses(address, 80)).toBe(expected);
    });
  });

  it.each(['host:0', 'host:99999', 'a b', '10.0.0.0/8', 'http://host', '*.internal', '-1', 'vault;x', '[vault]'])(
    'cannot include "%s"',
    (entry) => {
      expect(() => OwnHosts.fromEnvironment({ SLUICE_PROTECTED_HOSTS: entry })).toThrow('SLUICE_PROTECTED_HOSTS');
    },
  );
});

describe('a guard on a machine with public addresses', () => {
  const addresses = ['93.184.216.34', '2606:2800:220:1::1'];
  const guardWith = (allowed: string) =>
    AddressGuard.fromConfig(allowed, {
      lookup: tableLookup,
      ownHosts: OwnHosts.fromEnvironment({}, { lookup: tableLookup, ownAddresses: () => addresses }),
    });

  it.each([
    ['managed.example:443', 'allowed'],
    ['93.184.216.34:80', 'allowed'],
    ['managed.example:8081', 'refused'],
    ['93.184.216.34:8081', 'refused'],
    ['[::ffff:93.184.216.34]:8081', 'refused'],
    ['[2606:2800:220:1::1]:8081', 'refused'],
    ['[2606:2800:220:1::2]:8081', 'allowed'],
  ])('reaches only its public web site there: %s is %s', async (target, expected) =>
    expect(await ask(guardWith(''), target)).toBe(expected),
  );

  it('reaches another server there if the operator lists it', async () => {
    const guard = guardWith('93.184.216.34:8081,managed.example:8082');
    expect(await Promise.all(['93.184.216.34:8081', 'managed.example:8082', '93.184.216.34:8083'].map((each) => ask(guard, each)))).toEqual(
      ['allowed', 'allowed', 'refused'],
    );
    expect(await guard.literalProblem('93.184.216.34', 8083)).toContain('SLUICE_ALLOW_PRIVATE_HOSTS lists exceptions');
  });
});
