import { expect, it } from '@jest/globals';
import type { Session } from '../session/session.js';
import { apply, diff } from './apply.js';
import { externalIdOf, ownerOf } from './owner.js';

const manifest = 'apiVersion: sluice.dev/v1\nkind: Webhook\nmetadata: {name: inbox}\nspec: {url: http://in.box/}';
const webhook = (name: string, external_id?: string) => ({
  ...{ id: `wh_${name}`, name, url: 'http://in.box/', description: null, active: true, rate_limit: null },
  external_id,
});

/** A terminal of an account with these webhooks: what is printed, asked and deleted. */
function terminal({ webhooks, answer = 'y', isInteractive = true }: { webhooks: object[]; answer?: string; isInteractive?: boolean }) {
  const [shown, asked, deleted]: string[][] = [[], [], []];
  const session = {
    ...{ format: 'table', env: {}, isInteractive, stdin: async () => manifest },
    printStyled: (text: string) => shown!.push(text),
    warn: (text: string) => shown!.push(text),
    confirm: async (question: string) => {
      asked!.push(question);
      if (answer !== 'y') throw new Error('cancelled');
    },
    sluice: {
      each: async function* (page: (query: object) => Promise<{ data: object[] }>) {
        yield* (await page({})).data;
      },
      listSources: async () => ({ data: [] }),
      listWebhooks: async () => ({ data: webhooks }),
      listSubscriptions: async () => ({ data: [] }),
      listAutoSubscriptions: async () => ({ data: [] }),
      deleteWebhook: async ({ path }: { path: { id: string } }) => deleted!.push(path.id),
    },
  };
  return { session: session as unknown as Session, shown: () => shown!.join(''), asked: asked!, deleted: deleted! };
}

const webhooks = [
  webhook('inbox', 'sluice.dev/shop/inbox'),
  webhook('old', 'sluice.dev/shop/old'),
  webhook('of-default', 'sluice.dev/of-default'),
  webhook('of-another', 'sluice.dev/another/x'),
  webhook('by-hand'),
];

it('prune deletes only what the same set has created', async () => {
  const { session, shown, asked, deleted } = terminal({ webhooks });
  await expect(diff(session, { file: '-', set: 'shop', prune: true })).rejects.toThrow('1 of 2 differ');
  expect(shown()).toBe('no change  webhook inbox\ndelete     webhook old\n');
  await apply(session, { file: '-', set: 'shop', prune: true });
  expect(asked).toEqual(['Delete 1 resource(s) of the set shop?']);
  expect(deleted).toEqual(['wh_old']);
});

it('asks on a terminal before it deletes, and lists what it would delete', async () => {
  const { session, shown, deleted } = terminal({ webhooks, answer: 'n' });
  await expect(apply(session, { file: '-', set: 'shop', prune: true })).rejects.toThrow('cancelled');
  expect([shown(), deleted]).toEqual(['delete webhook old', []]);
  for (const options of [{ yes: true }, { isInteractive: false }]) {
    const without = terminal({ webhooks, answer: 'n', ...options });
    await apply(without.session, { file: '-', set: 'shop', prune: true, ...options });
    expect(without.deleted).toEqual(['wh_old']);
  }
});

it('refuses what belongs to another set, and a bad name of a set', async () => {
  const { session } = terminal({ webhooks });
  await expect(apply(session, { file: '-' })).rejects.toThrow(
    'standard input, document 1: a webhook inbox belongs to the set shop: add --set shop, or choose another name',
  );
  await expect(apply(session, { file: '-', set: 'a/b' })).rejects.toThrow('--set must have');
});

it.each([
  [{ set: 'default', name: 'a' }, 'sluice.dev/a'],
  [{ set: 'default', name: 'a/b' }, 'sluice.dev/default/a/b'],
  [{ set: 'shop', name: 'a/b' }, 'sluice.dev/shop/a/b'],
])('the owner %j is the external id %s', (owner, external_id) => {
  expect(externalIdOf(owner)).toBe(external_id);
  expect(ownerOf({ external_id })).toEqual(owner);
});

it('other external ids have no owner', () => {
  expect([ownerOf({ external_id: 'mine' }), ownerOf({})]).toEqual([undefined, undefined]);
});
