import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { NameLookup, type NameSources } from './name-lookup.js';

const unknown = (code = 'ENOTFOUND') => Promise.reject(Object.assign(new Error(code), { code }));

describe('NameLookup', () => {
  afterEach(() => void jest.useRealTimers());

  const asked: string[] = [];
  const hosts: Record<string, string[]> = { localhost: ['127.0.0.1', '::1'], 'intranet.corp': ['10.1.2.3'] };
  const open = (sources: Partial<NameSources>) => {
    asked.length = 0;
    return new NameLookup({
      resolve4: () => unknown(),
      resolve6: () => unknown('ENODATA'),
      system: async (name) => (asked.push(name), [{ address: '127.0.0.1' }]),
      hosts: (name) => hosts[name] ?? [],
      search: () => ({ domains: [], singleLabelsFirst: true }),
      ...sources,
    });
  };
  const addresses = async (lookup: NameLookup, name: string) => (await lookup.lookup(name)).map(({ address }) => address);

  it('queries the name servers and returns IPv4 addresses first', async () => {
    const lookup = open({ resolve4: async () => ['1.1.1.1', '1.0.0.1'], resolve6: async () => ['2606:4700::1111'] });
    expect(await addresses(lookup, 'one.one')).toEqual(['1.1.1.1', '1.0.0.1', '2606:4700::1111']);
    expect(asked).toEqual([]);
  });

  it('succeeds if only one address family resolves', async () => {
    expect(await addresses(open({ resolve6: async () => ['2606:4700::1111'] }), 'one.one')).toEqual(['2606:4700::1111']);
    expect(await addresses(open({ resolve4: async () => ['1.1.1.1'], resolve6: () => unknown('ETIMEOUT') }), 'one.one')).toEqual([
      '1.1.1.1',
    ]);
  });

  it.each([
    ['resolve4', 'resolve6'],
    ['resolve6', 'resolve4'],
  ] as const)('waits at most 2.5 s for %s when %s has succeeded', async (silent, responding) => {
    jest.useFakeTimers();
    const found = jest.fn();
    const lookup = open({ [silent]: () => new Promise(() => {}), [responding]: async () => ['1.1.1.1'] });
    void addresses(lookup, 'one.one').then(found);
    await jest.advanceTimersByTimeAsync(2000);
    expect(found).not.toHaveBeenCalled();
    await jest.advanceTimersByTimeAsync(1000);
    expect(found).toHaveBeenCalledWith(['1.1.1.1']);
  });

  it.each([
    ['localhost', hosts.localhost],
    ['LOCALHOST.', hosts.localhost],
    ['intranet.corp', hosts['intranet.corp']],
  ])('reads %s from the hosts file', async (name, expected) => {
    expect(await addresses(open({ resolve4: async () => ['1.1.1.1'] }), name)).toEqual(expected);
    expect(asked).toEqual([]);
  });

  it.each(['printer', 'printer.', 'known.to-the-system'])(
    'resolves %s with the system, because name servers do not know it',
    async (name) => {
      expect(await addresses(open({}), name)).toEqual(['127.0.0.1']);
      expect(asked).toEqual([name]);
    },
  );

  it('does not fall back to the system when a name server does not respond', async () => {
    await expect(open({ resolve4: () => unknown('ETIMEOUT') }).lookup('slow.example')).rejects.toMatchObject({ code: 'ETIMEOUT' });
    expect(asked).toEqual([]);
  });

  it('uses at most two of the threads of the process', async () => {
    const finish: (() => void)[] = [];
    let inside = 0;
    let most = 0;
    const lookup = open({
      system: async () => {
        most = Math.max(most, ++inside);
        await new Promise<void>((resolve) => finish.push(resolve));
        inside--;
        return [{ address: '127.0.0.1' }];
      },
    });
    const lookups = Array.from({ length: 5 }, (_, n) => lookup.lookup(`host${n}`));
    for (let done = 0; done < 5;) {
      await new Promise((resolve) => setImmediate(resolve));
      for (const end of finish.splice(0)) {
        end();
        done++;
      }
    }
    expect(await Promise.all(lookups)).toHaveLength(5);
    expect(most).toBe(2);
  });

  /** Knows the names of a search domain. */
  const cluster = (singleLabelsFirst: boolean): Partial<NameSources> => {
    const known: Record<string, string> = {
      'api.svc.local': '10.0.0.1',
      'api.ns.svc.local': '10.0.0.2',
      api: '10.0.0.3',
      'both.org': '1.1.1.1',
    };
    return {
      search: () => ({ domains: ['ns.svc.local', 'svc.local', 'corp'], singleLabelsFirst }),
      resolve4: async (name) => (known[name] === undefined ? unknown() : [known[name]]),
    };
  };

  it.each([
    ['api', true, '10.0.0.2'],
    ['api', false, '10.0.0.3'],
    ['api.', true, '127.0.0.1'],
    ['api.ns', true, '10.0.0.2'],
    ['api.ns', false, '10.0.0.2'],
    ['both.org', true, '1.1.1.1'],
  ])('completes %s with the search domains (names without a dot first: %s)', async (name, singleLabelsFirst, address) => {
    expect(await addresses(open(cluster(singleLabelsFirst)), name)).toEqual([address]);
  });

  it('resolves a name without a dot with the system even if no name server responds', async () => {
    expect(await addresses(open({ resolve4: () => unknown('ECONNREFUSED') }), 'printer')).toEqual(['127.0.0.1']);
  });

  it('resolves names of the hosts file and of search domains while hundreds of names wait that do not exist', async () => {
    const { promise: never } = Promise.withResolvers<{ address: string }[]>();
    const lookup = open({ ...cluster(true), system: (name) => (asked.push(name), never) });
    for (let n = 0; n < 400; n++) for (const name of [`host${n}`, `host${n}.stranger.example`]) void lookup.lookup(name);
    for (const name of ['localhost', 'intranet.corp', 'api', 'api.ns', 'both.org'])
      expect({ name, addresses: await addresses(lookup, name) }).not.toMatchObject({ addresses: [] });
    expect(asked.toSorted()).toEqual(['host0', 'host0.stranger.example', 'host1']);
  });

  describe('for a name that does not exist', () => {
    it('fails at once for five seconds, and then looks it up again', async () => {
      jest.useFakeTimers();
      const lookup = open({ system: (name) => (asked.push(name), unknown()) });
      const fail = () => expect(lookup.lookup('nowhere')).rejects.toMatchObject({ code: 'ENOTFOUND' });
      for (let n = 0; n < 3; n++) await fail();
      expect(asked).toEqual(['nowhere']);
      jest.advanceTimersByTime(5001);
      await fail();
      expect(asked).toEqual(['nowhere', 'nowhere']);
    });

    it('finds it as soon as the hosts file contains it', async () => {
      const names: Record<string, string[]> = {};
      const lookup = open({ system: () => unknown(), hosts: (name) => names[name] ?? [] });
      await expect(lookup.lookup('new')).rejects.toMatchObject({ code: 'ENOTFOUND' });
      names.new = ['10.0.0.9'];
      expect(await addresses(lookup, 'new')).toEqual(['10.0.0.9']);
    });

    it('looks it up again if a name server did not respond', async () => {
      let queries = 0;
      const lookup = open({ resolve4: () => (queries++, unknown('ETIMEOUT')) });
      for (let n = 0; n < 2; n++) await expect(lookup.lookup('slow.example')).rejects.toMatchObject({ code: 'ETIMEOUT' });
      expect(queries).toBe(2);
    });
  });
});
