import { describe, expect, it } from '@jest/globals';
import { NameLookup, type NameSources } from './name-lookup.js';

const unknown = (code = 'ENOTFOUND') => Promise.reject(Object.assign(new Error(code), { code }));

describe('NameLookup', () => {
  const asked: string[] = [];
  const open = (sources: Partial<NameSources>) => {
    asked.length = 0;
    return new NameLookup({
      resolve4: () => unknown(),
      resolve6: () => unknown('ENODATA'),
      system: async (name) => (asked.push(name), [{ address: '127.0.0.1' }]),
      local: () => new Set(['intranet.corp']),
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

  it.each(['localhost', 'localhost.', 'intranet.corp', 'known.to-the-system'])('resolves %s with the system', async (name) => {
    expect(await addresses(open({}), name)).toEqual(['127.0.0.1']);
    expect(asked).toEqual([name]);
  });

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

  it('resolves local names while a stranger’s name server does not respond to the system', async () => {
    const { promise: never } = Promise.withResolvers<{ address: string }[]>();
    const lookup = open({ system: async (name) => (asked.push(name), name.includes('stranger') ? never : [{ address: '127.0.0.1' }]) });
    for (let n = 0; n < 5; n++) void lookup.lookup(`host${n}.stranger.example`);
    expect(await addresses(lookup, 'localhost')).toEqual(['127.0.0.1']);
    expect(await addresses(lookup, 'intranet.corp')).toEqual(['127.0.0.1']);
    expect(asked).toEqual(['localhost', 'host0.stranger.example', 'intranet.corp']);
  });
});
