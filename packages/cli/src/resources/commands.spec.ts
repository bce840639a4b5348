import { expect, it } from '@jest/globals';
import { SluiceError } from '@sluice/client';
import type { Session } from '../session/session.js';
import { get, list, remove, switchOff } from './commands.js';

const OWN_COMPONENT = { id: 'sc_own', name: 'Own' };

/** A terminal of an account with these sources and a component, and nothing else. */
function terminal(sources: object[], format = 'table') {
  const notes: string[] = [];
  const items: unknown[] = [];
  const none = async () => ({ data: [] });
  const session = {
    ...{
      format,
      list: () => {},
      note: (text: string) => notes.push(text),
      item: (item: unknown) => items.push(item),
      confirm: async () => {},
    },
    sluice: {
      each: async function* (page: (query: object) => Promise<{ data: object[] }>) {
        yield* (await page({})).data;
      },
      ...{
        listWebhooks: none,
        listSubscriptions: none,
        listAutoSubscriptions: none,
        listRegistry: async () => ({ data: [{ id: 'sc_registered', key: 'own-key-of-the-registry', name: 'Registered' }] }),
        listConnections: none,
        listKeys: none,
      },
      getComponent: async ({ path: { keyOrId } }: { path: { keyOrId: string } }) => {
        if (![OWN_COMPONENT.id, 'own-key'].includes(keyOrId)) throw new SluiceError(404, {});
        return { data: OWN_COMPONENT };
      },
      listSources: async () => ({ data: sources }),
      patchSource: async ({ body }: { body: object }) => ({ data: { id: 'dc_1', ...body } }),
      deleteSource: async () => undefined,
    },
  };
  return { session: session as unknown as Session, notes, items };
}

const orders = { id: 'dc_1', name: 'orders', name_slug: 'orders', active: true };

it('an empty list says how to create something', async () => {
  const { session, notes } = terminal([]);
  await list(session, 'sources', {});
  await list(session, 'keys', { search: 'ci' });
  expect(notes).toEqual(['no sources yet: sluice deploy http-request --name orders', 'no key has ci in its name']);
});

it('a name that nothing has exits with 4, and the message says where to look', async () => {
  const { session } = terminal([orders]);
  await expect(get(session, ['none'])).rejects.toMatchObject({
    code: 4,
    message: 'no resource is called none; sluice list KIND lists them',
  });
  await expect(get(session, ['source', 'none'])).rejects.toThrow('no source is called none; sluice list sources lists them');
  await expect(get(session, ['webhook'])).rejects.toThrow('no resource is called webhook; give its name, too: webhook NAME');
});

it.each(['sc_own', 'component sc_own', 'component own-key', 'own-key'])(
  'finds a component that is not in the registry: %s',
  async (name) => {
    const { session, items } = terminal([orders]);
    await get(session, name.split(' '));
    expect(items).toEqual([OWN_COMPONENT]);
  },
);

it('off and delete have a result for programs', async () => {
  const { session, items, notes } = terminal([orders], 'json');
  await switchOff(session, ['orders']);
  await remove(session, ['orders'], {});
  expect(items).toEqual([
    { id: 'dc_1', active: false },
    { id: 'dc_1', kind: 'source', deleted: true },
  ]);
  expect(notes).toEqual(['source orders is off', 'deleted source orders (dc_1)']);
});
