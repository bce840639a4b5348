import { describe, expect, it } from '@jest/globals';
import { lookup } from 'node:dns/promises';
import { AddressGuard } from './address-guard.js';

const answers: Record<string, string[]> = {
  'public.test': ['93.184.216.34'],
  'loop.test': ['127.0.0.1'],
  localhost: ['127.0.0.1'],
  'localhost.': ['127.0.0.1'],
  'mixed.test': ['93.184.216.34', '10.0.0.1'],
  'both.test': ['2606:4700::1111', '93.184.216.34'],
  'intranet.test': ['10.1.2.3'],
};

/** Resolves names from the table. A name that looks like a number goes to the system, which parses `127.1` and similar forms as addresses. */
async function tableLookup(host: string): Promise<{ address: string }[]> {
  if (/^[\da-fx.]+$/.test(host)) return lookup(host, { all: true });
  const found = answers[host];
  if (!found) throw new Error('ENOTFOUND');
  return found.map((address) => ({ address }));
}

const guardWith = (allowed = '') => AddressGuard.fromConfig(allowed, { lookup: tableLookup });

async function ask(guard: AddressGuard, target: string): Promise<string> {
  const colon = target.lastIndexOf(':');
  try {
    return (await guard.resolve(target.slice(0, colon), Number(target.slice(colon + 1)))).address;
  } catch (error) {
    return (error as { code: string }).code;
  }
}

describe('the guard refuses every spelling of an address that is not public', () => {
  it.each([
    ['127.0.0.1:80', 'EACCES'],
    ['127.1:80', 'EACCES'],
    ['2130706433:80', 'EACCES'],
    ['0x7f000001:80', 'EACCES'],
    ['0177.0.0.1:80', 'EACCES'],
    ['0x7f.1:80', 'EACCES'],
    ['0:80', 'EACCES'],
    ['0.0.0.0:80', 'EACCES'],
    ['localhost:80', 'EACCES'],
    ['localhost.:80', 'EACCES'],
    ['loop.test:80', 'EACCES'],
    ['LOOP.test:80', 'EACCES'],
    ['mixed.test:80', 'EACCES'],
    ['[::1]:80', 'EACCES'],
    ['::1:80', 'EACCES'],
    ['[::]:80', 'EACCES'],
    ['[::ffff:127.0.0.1]:80', 'EACCES'],
    ['[::ffff:7f00:1]:80', 'EACCES'],
    ['[::127.0.0.1]:80', 'EACCES'],
    ['[64:ff9b::7f00:1]:80', 'EACCES'],
    ['[64:ff9b:1::a00:1]:80', 'EACCES'],
    ['[2002:7f00:1::]:80', 'EACCES'],
    ['[2001:0:1::1]:80', 'EACCES'],
    ['[fe80::1]:80', 'EACCES'],
    ['[fe80::1%eth0]:80', 'EACCES'],
    ['[fc00::1]:80', 'EACCES'],
    ['[fd00:ec2::254]:80', 'EACCES'],
    ['[ff02::1]:80', 'EACCES'],
    ['[2001:db8::1]:80', 'EACCES'],
    ['[100::1]:80', 'EACCES'],
    ['[5f00::1]:80', 'EACCES'],
    ['10.0.0.1:80', 'EACCES'],
    ['172.16.0.1:80', 'EACCES'],
    ['172.31.255.255:80', 'EACCES'],
    ['192.168.1.1:80', 'EACCES'],
    ['169.254.169.254:80', 'EACCES'],
    ['169.254.170.2:80', 'EACCES'],
    ['100.64.0.1:80', 'EACCES'],
    ['100.100.100.200:80', 'EACCES'],
    ['168.63.129.16:80', 'EACCES'],
    ['192.0.0.192:80', 'EACCES'],
    ['198.18.0.1:80', 'EACCES'],
    ['224.0.0.1:80', 'EACCES'],
    ['255.255.255.255:80', 'EACCES'],
    ['240.0.0.1:80', 'EACCES'],
    ['93.184.216.34:22', 'EACCES'],
    ['93.184.216.34:25', 'EACCES'],
    ['93.184.216.34:6379', 'EACCES'],
    ['93.184.216.34:0', 'EPROTO'],
    ['93.184.216.34:99999', 'EPROTO'],
    ['93.184.216.34:80.5', 'EPROTO'],
    ['1e9.test:80', 'ENOTFOUND'],
    ['unknown.test:80', 'ENOTFOUND'],
    ['a b:80', 'EPROTO'],
    ['93.184.216.34:80@127.0.0.1:80', 'EPROTO'],
    ['127。0。0。1:80', 'EPROTO'],
    ['①②⑦.⓪.⓪.①:80', 'EPROTO'],
    ['93.184.216.34\r\nx:80', 'EPROTO'],
    [':80', 'EPROTO'],
  ])('refuses %s as %s', async (target, outcome) => {
    expect(await ask(guardWith(), target)).toBe(outcome);
  });
});

describe('the guard returns the address to dial', () => {
  it.each([
    ['public.test:443', '93.184.216.34'],
    ['PUBLIC.test:8443', '93.184.216.34'],
    ['93.184.216.34:80', '93.184.216.34'],
    ['[2606:4700::1111]:443', '2606:4700::1111'],
    ['both.test:443', '2606:4700::1111'],
  ])('the address to dial for %s is %s', async (target, address) => {
    expect(await ask(guardWith(), target)).toBe(address);
  });

  it('returns every checked address in the order of the lookup', async () => {
    const { address, family, all } = await guardWith().resolve('both.test', 443);
    expect({ address, family, all }).toEqual({
      address: '2606:4700::1111',
      family: 6,
      all: [
        { address: '2606:4700::1111', family: 6 },
        { address: '93.184.216.34', family: 4 },
      ],
    });
  });
});

describe('exceptions of the operator', () => {
  it.each([
    ['127.0.0.0/8', '127.0.0.1:9', '127.0.0.1'],
    ['127.0.0.0/8', '127.1:9', '127.0.0.1'],
    ['127.0.0.0/8', 'localhost:22', 'EACCES'],
    ['127.0.0.0/8,::1,localhost', 'localhost:6379', 'EACCES'],
    ['127.0.0.0/8,::1,localhost', '[::1]:2375', 'EACCES'],
    ['127.0.0.0/8:6379,127.0.0.0/8', '127.0.0.1:6379', '127.0.0.1'],
    ['127.0.0.1:443', '127.0.0.1:8080', 'EACCES'],
    ['127.0.0.0/8', '[::1]:80', 'EACCES'],
    ['127.0.0.0/8,::1,localhost', '[::1]:80', '::1'],
    ['localhost', 'localhost:80', '127.0.0.1'],
    ['localhost', 'localhost.:80', '127.0.0.1'],
    ['localhost', 'loop.test:80', 'EACCES'],
    ['localhost', '127.0.0.1:80', 'EACCES'],
    ['localhost:8080', 'localhost:80', 'EACCES'],
    ['localhost:8080', 'localhost:8080', '127.0.0.1'],
    [' 10.1.2.3:81 , intranet.test:82', 'intranet.test:81', '10.1.2.3'],
    ['10.1.2.3:81,intranet.test:82', 'intranet.test:82', '10.1.2.3'],
    ['10.1.2.3:81,intranet.test:82', 'intranet.test:83', 'EACCES'],
    ['10.0.0.0/8:81', '10.9.9.9:81', '10.9.9.9'],
    ['[fd00::]/8:81', '[fd00::5]:81', 'fd00::5'],
    ['[fd00::5]:81', '[fd00::5]:82', 'EACCES'],
    ['10.0.0.0/8', 'mixed.test:80', '93.184.216.34'],
    ['localhost:*', 'localhost:22', '127.0.0.1'],
    ['[fd00::5]:*', '[fd00::5]:22', 'fd00::5'],
  ])('under the exceptions "%s", the outcome of %s is %s', async (allowed, target, outcome) => {
    expect(await ask(guardWith(allowed), target)).toBe(outcome);
  });

  it.each(['10.0.0.0/33', '10.0.0/x', '::1/129', 'host:0', 'host:99999', 'host:x', 'a b', 'host/8', '10.0.0.0/8/8', '[::1', '*'])(
    'name an entry that cannot be parsed: "%s"',
    (entry) => {
      expect(() => AddressGuard.fromConfig(`localhost,${entry}`)).toThrow(`"${entry}" is not a CIDR, address or host name`);
    },
  );
});

describe('refusals', () => {
  it('never reveal the address of a name', async () => {
    const refusal = await guardWith()
      .resolve('intranet.test', 80)
      .catch((error: Error) => error);
    expect(refusal).toMatchObject({
      name: 'EgressRefused',
      code: 'EACCES',
      message: 'intranet.test may not be called: it is not a public address',
    });
    expect(JSON.stringify(refusal)).not.toContain('10.1.2.3');
  });

  it.each(['localhost', '127.0.0.1'])('explain that a host is Sluice itself, and what to do instead: %s', async (host) => {
    const ownHosts = { refuses: async () => true, isHere: async () => true };
    const guard = AddressGuard.fromConfig('localhost:*,127.0.0.1:*', { lookup: tableLookup, ownHosts });
    const message =
      `${host}:3001 may not be called: it is Sluice itself, whatever SLUICE_ALLOW_PRIVATE_HOSTS lists; ` +
      'to send events to a source, subscribe the source instead of calling its endpoint';
    await expect(guard.resolve(host, 3001)).rejects.toMatchObject({ code: 'EACCES', message });
  });

  it('are made in time when the name server does not respond', async () => {
    const guard = AddressGuard.fromConfig('', { lookup: () => new Promise(() => {}), lookupMs: 20 });
    await expect(guard.resolve('silent.test', 80)).rejects.toMatchObject({
      code: 'ETIMEDOUT',
      message: 'silent.test could not be resolved within 20 ms',
    });
  });

  it('include a name that has no address', async () => {
    const guard = AddressGuard.fromConfig('', { lookup: async () => [] });
    await expect(guard.resolve('empty.test', 80)).rejects.toMatchObject({ code: 'ENOTFOUND' });
  });
});

describe('resolving', () => {
  it('looks up a name once for concurrent calls', async () => {
    let asked = 0;
    const lookupOnce = async (): Promise<{ address: string }[]> => {
      asked++;
      return [{ address: '93.184.216.34' }];
    };
    const guard = AddressGuard.fromConfig('', { lookup: lookupOnce });
    await Promise.all(Array.from({ length: 20 }, () => guard.resolve('public.test', 80)));
    expect(asked).toBe(1);
    await guard.resolve('public.test', 80);
    expect(asked).toBe(2);
  });
});

describe('a name with thousands of addresses', () => {
  it('has 16 that are checked and returned', async () => {
    let checked = 0;
    const lookup = async () => Array.from({ length: 4000 }, (_, n) => ({ address: `93.184.${n >> 8}.${n & 255}` }));
    const guard = AddressGuard.fromConfig('', { lookup, ownHosts: { refuses: async () => (checked++, false), isHere: async () => false } });
    const { all } = await guard.resolve('many.test', 80);
    expect({ checked, returned: all.length, first: all[0]?.address }).toEqual({ checked: 16, returned: 16, first: '93.184.0.0' });
  });
});

describe('a literal address', () => {
  const problem = (url: string, allowed = '', own = 0) => {
    const { hostname, port } = new URL(url);
    const ownHosts = { refuses: async (_: string, port: number) => port === own, isHere: async () => false };
    return AddressGuard.fromConfig(allowed, { lookup: tableLookup, ownHosts }).literalProblem(hostname, Number(port || 80));
  };
  it.each([
    'http://127.0.0.1/',
    'http://127.1/',
    'http://0x7f000001/',
    'http://10.0.0.1:8080/',
    'http://[::1]/',
    'http://[::ffff:10.0.0.1]/',
  ])('an address that is not public is refused before it is called: %s', async (url) => {
    expect(await problem(url)).toMatch(/not a public address/);
    expect(await problem(url, '127.0.0.0/8,10.0.0.0/8,::1,::ffff:10.0.0.1')).toBeNull();
  });
  it('is refused on a port that no webhook has; a name is judged when it is resolved', async () => {
    expect(await problem('http://93.184.216.34:22/')).toMatch(/port is not allowed/);
    expect(await problem('http://93.184.216.34/')).toBeNull();
    expect(await problem('http://localhost/')).toBeNull();
    expect(await problem('http://loop.test/')).toBeNull();
  });
  it.each(['http://127.1:3000/', 'http://2130706433:3000/', 'http://[::1]:3000/'])(
    'is refused if it is Sluice itself, whatever is allowed: %s',
    async (url) => {
      expect(await problem(url, '127.0.0.1,::1', 3000)).toMatch(/Sluice itself/);
      expect(await problem(url, '127.0.0.1,::1', 3001)).toBeNull();
    },
  );
});
