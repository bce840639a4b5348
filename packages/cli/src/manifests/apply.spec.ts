import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { SluiceError } from '@sluice/client';
import { exitCodeOf } from '../session/errors.js';
import type { Session } from '../session/session.js';
import { apply, diff } from './apply.js';
import { externalIdOf, ownerOf } from './owner.js';

const manifest = 'apiVersion: sluice.dev/v1\nkind: Webhook\nmetadata: {name: inbox}\nspec: {url: http://in.box/}';
const webhook = (name: string, external_id?: string) => ({
  ...{ id: `wh_${name}`, name, url: 'http://in.box/', description: null, active: true, rate_limit: null },
  external_id,
});

interface Given {
  webhooks: object[];
  sources?: object[];
  subscriptions?: object[];
  autoSubscriptions?: object[];
  input?: string;
  answer?: string;
  isInteractive?: boolean;
}

/** A terminal of an account with these resources: what is printed, asked and deleted. */
function terminal({ webhooks, sources = [], subscriptions = [], autoSubscriptions = [], ...rest }: Given) {
  const { input = manifest, answer = 'y', isInteractive = true } = rest;
  const [shown, asked, deleted]: string[][] = [[], [], []];
  const session = {
    ...{ format: 'table', env: {}, isInteractive, stdin: async () => input },
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
      listSources: async () => ({ data: sources }),
      listWebhooks: async () => ({ data: webhooks }),
      getCurrentUser: async () => ({ data: { id: 'u_1' } }),
      listSubscriptions: async () => ({ data: subscriptions }),
      listAutoSubscriptions: async () => ({ data: autoSubscriptions }),
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

it.each<[string, string, { auto?: string; autoSubscriptions?: object[] }]>([
  ['keeps', 'that the account has', { autoSubscriptions: [{ id: 'asub_1', listener_id: 'wh_inbox', event_name: 'default' }] }],
  ['keeps', 'that the manifests contain but someone has deleted', { auto: "event_name: ''" }],
  ['deletes', 'of another stream', { auto: 'event_name: orders' }],
])('prune %s the subscription of an auto-subscription %s', async (verb, _, { auto, ...account }) => {
  const input = [manifest, 'apiVersion: sluice.dev/v1\nkind: Source\nmetadata: {name: one}\nspec: {component: {id: sc_1}}'];
  if (auto) input.push(`apiVersion: sluice.dev/v1\nkind: Subscription\nspec: {auto: true, listener: webhook/inbox, ${auto}}`);
  const one = { id: 'dc_1', name: 'one', name_slug: 'one', active: true, component_id: 'sc_1', configured_props: {} };
  const { session, shown } = terminal({
    ...account,
    webhooks: [webhook('inbox', 'sluice.dev/inbox')],
    sources: [{ ...one, external_id: 'sluice.dev/one' }],
    subscriptions: [{ id: 'sub_1', emitter_id: 'dc_1', listener_id: 'wh_inbox', event_name: '' }],
    input: input.join('\n---\n'),
  });
  await apply(session, { file: '-', prune: true, dryRun: true });
  expect(/^delete {5}subscription/m.test(shown())).toBe(verb === 'deletes');
});

describe('a folder with manifests in a subfolder', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-apply-'));
    mkdirSync(join(folder, 'team'));
    writeFileSync(join(folder, 'inbox.yaml'), manifest);
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const remark = () => `${join(folder, 'team', 'other.yaml')} is not read, because it is in a subfolder`;

  it('is a set, and prune deletes what no manifest describes', async () => {
    writeFileSync(join(folder, 'team', 'other.yaml'), manifestOf('other', 'old', 'http://in.box/'));
    const { session, shown, deleted } = terminal({ webhooks, isInteractive: false });
    await apply(session, { file: folder, set: 'shop', prune: true });
    expect(shown()).toBe(`${remark()}unchanged  webhook inbox\ndeleted    webhook old\n`);
    expect(deleted).toEqual(['wh_old']);
  });

  const source = { id: 'dc_1', name: 'One', name_slug: 'one-1', active: true, component_id: 'sc_1', configured_props: {} };
  const account = {
    webhooks,
    sources: [{ ...source, external_id: 'sluice.dev/shop/one' }],
    subscriptions: [{ id: 'sub_1', emitter_id: 'dc_1', listener_id: 'wh_inbox', event_name: '' }],
  };
  it.each([
    ['webhook old', 'kind: Webhook\nmetadata: {name: old}\nspec: {url: http://new.test/}'],
    ['source one-1', 'kind: Source\nmetadata: {name: one}\nspec: {component: {id: sc_1}}'],
    ...['source/one', 'source/one-1', 'dc_1'].map((emitter) => [
      'subscription source/one → webhook/inbox',
      `kind: Subscription\nspec: {emitter: ${emitter}, listener: webhook/inbox, event_name: default}`,
    ]),
  ])('is refused if prune would delete the %s, which a file there describes', async (what, text) => {
    const file = join(folder, 'team', 'other.yaml');
    writeFileSync(file, `apiVersion: sluice.dev/v1\n${text}`);
    const { session, deleted } = terminal(account);
    const message = `--prune would delete ${what}, which is in ${file}, document 1: move that file to ${folder}, or elsewhere`;
    await expect(apply(session, { file: folder, set: 'shop', prune: true })).rejects.toMatchObject({ code: 2, message });
    expect(deleted).toEqual([]);
    await apply(session, { file: folder, set: 'shop' });
  });
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

/** The manifest of a webhook. name: its name in the account. */
const manifestOf = (manifestName: string, name: string | null, url: string) =>
  `apiVersion: sluice.dev/v1\nkind: Webhook\nmetadata: {name: ${manifestName}}\nspec: {url: '${url}', name: ${name}}`;

it('webhooks of the same name, or without one, are distinguished by their URLs', async () => {
  const [one, two] = ['http://one.test/', 'http://two.test/'];
  const all = [one, two].flatMap((url) => [null, 'same'].map((name) => ({ ...webhook(`${name} ${url}`), name, url })));
  const input = [...all]
    .reverse()
    .map(({ name, url }, n) => manifestOf(`w${n}`, name, url))
    .join('\n---\n');
  const { session, shown } = terminal({ input, webhooks: all });
  await diff(session, { file: '-' });
  expect(shown().match(/no change/g)).toHaveLength(4);
});

it('a webhook belongs to one manifest, and an unnamed one of another URL to none', async () => {
  const input = [
    manifestOf('a', 'shared', 'http://in.box/'),
    manifestOf('b', 'shared', 'http://b.test/'),
    manifestOf('c', null, 'http://c.test/'),
  ].join('\n---\n');
  const { session, shown } = terminal({ input, webhooks: [webhook('shared'), { ...webhook('x'), name: null }] });
  await expect(diff(session, { file: '-' })).rejects.toThrow('2 of 3 differ');
  expect(shown()).toBe('no change  webhook a\ncreate     webhook b\ncreate     webhook c\n');
});

it.each([
  ['the webhook of this id, whatever its URL', 'wh_two', '', 'http://new.test/', 'update     webhook wh_two: url, name'],
  ['the webhook of this id, which gets the name', 'wh_two', ', name: renamed', 'http://two.test/', 'update     webhook wh_two: name'],
  ['the webhook of this URL', 'same', '', 'http://two.test/', 'no change  webhook same'],
  ['none, because a number is not the name of a webhook', 'same-2', '', 'http://two.test/', 'create     webhook same-2'],
])('a manifest written by hand is %s', async (_, name, spec, url, expected) => {
  const all = ['two', 'one'].map((each) => ({ ...webhook('same'), id: `wh_${each}`, url: `http://${each}.test/` }));
  const input = `apiVersion: sluice.dev/v1\nkind: Webhook\nmetadata: {name: ${name}}\nspec: {url: '${url}'${spec}}`;
  const { session, shown } = terminal({ input, webhooks: all });
  await apply(session, { file: '-', dryRun: true });
  expect(shown()).toBe(`${expected}\n`);
});

it.each<[string, Parameters<typeof manifestOf>[], string]>([
  [
    'whose number is the name of another manifest',
    [
      ['same', 'same', 'http://two.test/'],
      ['same-2', 'same-2', 'http://three.test/'],
    ],
    'no change  webhook same\ncreate     webhook same-2\n',
  ],
  [
    'whose name is that of a later manifest',
    [
      ['first', 'same', 'http://one.test/'],
      ['same', 'same', 'http://two.test/'],
    ],
    'no change  webhook first\nno change  webhook same\n',
  ],
])('a webhook %s is the one of its URL', async (_, manifests, expected) => {
  const all = ['two', 'one'].map((each) => ({ ...webhook('same'), id: `wh_${each}`, url: `http://${each}.test/` }));
  const { session, shown } = terminal({ input: manifests.map((each) => manifestOf(...each)).join('\n---\n'), webhooks: all });
  await apply(session, { file: '-', dryRun: true });
  expect(shown()).toBe(expected);
});

it('prune names the ends and the stream of a subscription as manifests do', async () => {
  const [one, two] = ['one', 'two'].map((name) => ({
    ...{ id: `dc_${name}`, name, name_slug: name, active: true, component_id: 'sc_1', configured_props: {} },
    external_id: `sluice.dev/${name}`,
  }));
  const subscription = { id: 'sub_1', emitter_id: 'dc_one', listener_id: 'wh_inbox' };
  const { session, shown } = terminal({
    webhooks: [webhook('inbox', 'sluice.dev/inbox')],
    sources: [two!, one!],
    subscriptions: [
      { ...subscription, event_name: '' },
      { ...subscription, event_name: '$errors' },
      { ...subscription, emitter_id: 'dc_two', event_name: 'default' },
    ],
  });
  await apply(session, { file: '-', prune: true, dryRun: true });
  expect(shown()).toContain(
    'delete     subscription source/one → webhook/inbox\n' +
      'delete     subscription source/one → webhook/inbox ($errors)\n' +
      'delete     subscription source/two → webhook/inbox\n',
  );
});

describe('a dry run', () => {
  const subscription = (emitter: string, listener = 'webhook/inbox'): string =>
    `apiVersion: sluice.dev/v1\nkind: Subscription\nspec: {emitter: ${emitter}, listener: ${listener}}`;
  const ofSource = (component: string): string =>
    `apiVersion: sluice.dev/v1\nkind: Source\nmetadata: {name: a}\nspec: {component: ${component}}`;

  it.each([
    ['orders is not an end of a subscription: write source/NAME, webhook/NAME, account or an id', subscription('orders')],
    ['Source/orders is not an end of a subscription', subscription('Source/orders')],
    ['inbox is not an end of a subscription', subscription("'dc_*'", 'inbox')],
    ['there is no source dc_nosuch in the account', subscription('dc_nosuch')],
    ['there is no webhook wh_nosuch in the account', subscription("'dc_*'", 'wh_nosuch')],
    ['the registry has no component nope; sluice list components lists them', ofSource('{key: nope}')],
    ['there is no file nope.mjs', ofSource('{file: nope.mjs}')],
  ])('refuses what apply would find only in the middle: %s', async (message, document) => {
    const { session } = terminal({ webhooks: [], input: [manifest, document].join('\n---\n') });
    Object.assign(session.sluice, { getRegisteredComponent: () => Promise.reject(new SluiceError(404, {})) });
    await expect(apply(session, { file: '-', dryRun: true })).rejects.toMatchObject({
      code: 2,
      message: expect.stringMatching(new RegExp(`^standard input, document 2: ${message}`)),
    });
  });

  it('finds a source of the account by its slug, or else by its name if only one has it', async () => {
    const orders = { id: 'dc_1', name: 'Orders', name_slug: 'orders-1', active: true };
    const planned = async (sources: object[]): Promise<string> => {
      const { session, shown } = terminal({ webhooks, sources, input: subscription('source/Orders', 'webhook/inbox') });
      await apply(session, { file: '-', set: 'shop', dryRun: true });
      return shown();
    };
    expect(await planned([orders])).toBe('create     subscription source/Orders → webhook/inbox\n');
    await expect(planned([orders, { ...orders, id: 'dc_2', name_slug: 'orders-2' }])).rejects.toThrow(
      'several sources are called Orders: orders-1, orders-2',
    );
  });
});

it('requests a component once, however many sources have it', async () => {
  const names = ['a', 'b', 'c'];
  const input = names.map(
    (name) =>
      `apiVersion: sluice.dev/v1\nkind: Source\nmetadata: {name: ${name}}\nspec: {component: {key: interval-timer}, props: {timer: {intervalSeconds: 60}}}`,
  );
  const configured_props = { timer: { cron: null, interval_seconds: 60 } };
  const sources = names.map((name) => ({ id: `dc_${name}`, name, name_slug: name, active: true, component_id: 'sc_1', configured_props }));
  const { session, shown } = terminal({ webhooks: [], sources, input: input.join('\n---\n') });
  const requests: string[] = [];
  Object.assign(session.sluice, {
    getRegisteredComponent: async () => (requests.push('key'), { data: { id: 'sc_1' } }),
    getComponent: async () => (requests.push('id'), { data: { configurable_props: [{ name: 'timer', type: '$.interface.timer' }] } }),
  });
  await diff(session, { file: '-' });
  expect([shown().match(/no change/g), requests]).toEqual([
    ['no change', 'no change', 'no change'],
    ['key', 'id'],
  ]);
});

it('an auto-subscription may name a webhook of the account', async () => {
  const input = 'apiVersion: sluice.dev/v1\nkind: Subscription\nspec: {auto: true, listener: webhook/by-hand, event_name: orders}';
  const { session } = terminal({ input, webhooks });
  const created: unknown[] = [];
  Object.assign(session.sluice, { createAutoSubscription: async ({ query }: { query: object }) => created.push(query) });
  await apply(session, { file: '-' });
  expect(created).toEqual([{ listener_id: 'wh_by-hand', event_name: 'orders' }]);
});

it.each([
  ['account', 'u_1', '', ''],
  ['dc_1', 'dc_1', 'default', ''],
  ['dc_1', 'dc_1', '', 'default'],
  ['dc_1', 'dc_1', 'orders', 'orders'],
])('the subscription to %s is the one to %s, and the stream %j is the stream %j', async (emitter, emitter_id, wanted, event_name) => {
  const input = `apiVersion: sluice.dev/v1\nkind: Subscription\nspec: {emitter: ${emitter}, listener: wh_1, event_name: '${wanted}'}`;
  const { session, shown } = terminal({
    input,
    webhooks: [webhook('1')],
    sources: [{ id: 'dc_1', name: 'one', name_slug: 'one' }],
    subscriptions: [{ id: 'sub_1', emitter_id, listener_id: 'wh_1', event_name }],
  });
  await diff(session, { file: '-' });
  expect(shown()).toMatch(/^no change /);
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

it.each([
  ['{url: http://in.box/, active: {valueFrom: {env: HOME}}}', {}, 'spec.active must be true or false'],
  ['{}', {}, 'spec.url is required'],
  ['{url: http://in.box/}', { set: 's'.repeat(40), name: 'n'.repeat(100) }, 'is too long: shorten the name or the set by 24'],
])(
  'refuses what the API would refuse before it changes anything: %s %j',
  async (spec, { set, name = 'new' }: { set?: string; name?: string }, message) => {
    const documents = ['first', name].map(
      (each, n) => `apiVersion: sluice.dev/v1\nkind: Webhook\nmetadata: {name: ${each}}\nspec: ${n === 0 ? '{url: http://a/}' : spec}`,
    );
    const { session } = terminal({ webhooks: [], input: documents.join('\n---\n') });
    Object.assign(session.env, { HOME: 'false' });
    await expect(apply(session, { file: '-', set })).rejects.toMatchObject({ code: 2, message: expect.stringContaining(message) });
  },
);

it('a source whose name export has shortened is the one that has this name', async () => {
  const name = 'n'.repeat(150);
  const source = { id: 'dc_1', name, name_slug: name, active: true, component_id: 'sc_1', configured_props: {} };
  const input = `apiVersion: sluice.dev/v1\nkind: Source\nmetadata: {name: ${name.slice(0, 100)}}\nspec: {name: ${name}, component: {id: sc_1}}`;
  const { session, shown } = terminal({ webhooks: [], sources: [source], input });
  await diff(session, { file: '-' });
  expect(shown()).toMatch(/^no change /);
});

/** The steps for the manifests of sources: `NAME: spec`. */
async function sourceSteps(sources: object[], specs: Record<string, string>, component: object = {}): Promise<string> {
  const input = Object.entries(specs).map(
    ([name, spec]) => `apiVersion: sluice.dev/v1\nkind: Source\nmetadata: {name: ${name}}\nspec: {component: {id: sc_1}, ${spec}}`,
  );
  const { session, shown } = terminal({ webhooks: [], sources, input: input.join('\n---\n') });
  Object.assign(session.sluice, { getComponent: async () => ({ data: component }) });
  await apply(session, { file: '-', dryRun: true });
  return shown();
}

const source = (fields: object): object => ({ ...{ id: 'dc_1', active: true, component_id: 'sc_1', configured_props: {} }, ...fields });

it('a source may have a name from which its slug differs', async () => {
  const eu = source({ name: 'Orders (EU)', name_slug: 'orders-eu' });
  expect(await sourceSteps([eu], { eu: "name: 'Orders (EU)'" })).toBe('no change  source eu\n');
  const twins = [source({ id: 'dc_2', name: 'Twin', name_slug: 'twin-1' }), source({ name: 'Twin', name_slug: 'twin' })];
  expect(await sourceSteps(twins, { twin: 'name: Twin', 'twin-1': 'name: Twin' })).toBe(
    'no change  source twin\nno change  source twin-1\n',
  );
  // the other one is that of another manifest
  expect(await sourceSteps(twins.slice(1), { 'twin-1': 'name: Twin', twin: 'name: Twin' })).toBe(
    'create     source twin-1\nno change  source twin\n',
  );
});

it('changes none of several sources that are called like the manifest says', async () => {
  const twins = [source({ id: 'dc_2', name: 'Twin', name_slug: 'twin-1' }), source({ name: 'Twin', name_slug: 'twin' })];
  await expect(sourceSteps(twins, { other: 'name: Twin' })).rejects.toThrow(
    'several sources are called Twin: twin-1, twin; use the slug of one of them as metadata.name',
  );
});

it('compares a thousand sources and webhooks of one name', async () => {
  const all = Array.from({ length: 1000 }, (_, n) => n);
  const input = all.flatMap((n) => [
    manifestOf(`w${n}`, 'same', 'http://in.box/'),
    `apiVersion: sluice.dev/v1\nkind: Source\nmetadata: {name: s${n}}\nspec: {name: same, component: {id: sc_1}}`,
  ]);
  const { session, shown } = terminal({
    webhooks: all.map((n) => ({ ...webhook('same'), id: `wh_${n}` })),
    sources: all.map((n) => source({ id: `dc_${n}`, name: 'same', name_slug: `s${n}` })),
    input: input.join('\n---\n'),
  });
  await diff(session, { file: '-' });
  expect(shown().match(/no change/g)).toHaveLength(2000);
});

it.each([
  ['{note: null}', {}, 'no change'],
  ['{note: null}', { note: 'initial' }, 'no change'],
  ['{note: null}', { note: 'other' }, 'update     source a: props.note'],
  ['{}', { note: 'initial' }, 'no change'],
  ['{}', { note: 'other' }, 'update     source a: props.note'],
  ['{timer: {intervalSeconds: 60}}', { timer: { cron: null, interval_seconds: 60 } }, 'no change'],
  ['{timer: {cron: 0 * * * *}}', { timer: { cron: '0 * * * *', interval_seconds: null } }, 'no change'],
  ['{timer: {cron: 0 * * * *}}', { timer: { cron: '1 * * * *', interval_seconds: null } }, 'update     source a: props.timer'],
  ['{timer: {cron: 1, seconds: 5}}', { timer: { cron: 1, seconds: 6 } }, 'update     source a: props.timer'],
  ['{plain: {interval_seconds: 60}}', { plain: { intervalSeconds: 60 } }, 'update     source a: props.plain'],
  ['{plain: {}}', { plain: { cron: '' } }, 'update     source a: props.plain'],
  ['{plain: {zero: -0.0, list: [-0.0]}}', { plain: { zero: 0, list: [0] } }, 'no change'],
])('the props %s of a source that has %j: %s', async (props, configured_props, expected) => {
  const component = {
    configurable_props: [
      { name: 'note', type: 'string', default: 'initial' },
      { name: 'timer', type: '$.interface.timer' },
      { name: 'plain', type: 'object' },
    ],
  };
  const found = source({ name: 'a', name_slug: 'a', configured_props });
  expect(await sourceSteps([found], { a: `props: ${props}` }, component)).toContain(expected);
});

it('removes a prop with a default value that another component may lack', async () => {
  const found = source({ name: 'a', name_slug: 'a', component_id: 'sc_before', configured_props: { note: 'initial' } });
  const component = { configurable_props: [{ name: 'note', type: 'string', default: 'initial' }] };
  expect(await sourceSteps([found], { a: 'props: {}' }, component)).toBe('update     source a: component, props.note\n');
});

it('reports that a component was created whose key is not the name of its manifest', async () => {
  const input = 'apiVersion: sluice.dev/v1\nkind: Component\nmetadata: {name: shop}\nspec: {code: "export default {}"}';
  const { session } = terminal({ webhooks: [], input });
  Object.assign(session.sluice, {
    getComponent: async () => Promise.reject(new SluiceError(404, {})),
    createComponent: async () => ({ data: { id: 'sc_1' } }),
  });
  await expect(apply(session, { file: '-' })).rejects.toThrow(
    'standard input, document 1: created, but the key of the component must be its metadata.name, shop',
  );
});

it('reports what to do if another apply has created the same at the same time', async () => {
  const { session } = terminal({ webhooks: [] });
  const detail = 'another of your webhooks has this external_id';
  Object.assign(session.sluice, { createWebhook: () => Promise.reject(new SluiceError(409, { detail })) });
  await expect(apply(session, { file: '-' })).rejects.toThrow(
    `webhook inbox: ${detail}; another apply has created it in the meantime: apply again`,
  );
});

it.each([
  ['differences', async () => ({ data: { id: 'u_1' } }), 1],
  ['a failure', () => Promise.reject(new SluiceError(503, {})), 2],
  ['a key that is refused', () => Promise.reject(new SluiceError(401, {})), 3],
])('diff has its own exit code for %s', async (_, getCurrentUser, code) => {
  const { session } = terminal({ webhooks: [] });
  Object.assign(session.sluice, { getCurrentUser });
  expect(exitCodeOf(await diff(session, { file: '-' }).catch((error: unknown) => error))).toBe(code);
});

it('prints what is done for programs, also if a step fails', async () => {
  const { session } = terminal({ webhooks: [], input: manifest });
  const listed: unknown[] = [];
  Object.assign(session, { format: 'json', list: (items: unknown) => listed.push(items) });
  Object.assign(session.sluice, { createWebhook: async () => Promise.reject(new Error('refused')) });
  await expect(apply(session, { file: '-' })).rejects.toThrow('webhook inbox: refused');
  expect(listed).toEqual([[]]);
});

it('prints each step as soon as it is done with -o ndjson, because a signal may end the next one', async () => {
  const input = ['a', 'b'].map((name) => manifestOf(name, name, 'http://in.box/')).join('\n---\n');
  const { session } = terminal({ webhooks: [], input });
  const events: unknown[] = [];
  Object.assign(session, { format: 'ndjson', item: (item: unknown) => events.push(item), list: () => events.push('list') });
  Object.assign(session.sluice, { createWebhook: async ({ body }: { body: object }) => (events.push(body), { data: { id: 'wh_1' } }) });
  await apply(session, { file: '-' });
  const [a, b] = [expect.objectContaining({ name: 'a' }), expect.objectContaining({ name: 'b' })];
  expect(events).toEqual([a, { what: 'webhook a', result: 'created' }, b, { what: 'webhook b', result: 'created' }]);
});

it.each([
  ['Source', 'component: {id: sc_1}', 'source inbox: created, but still on: sluice off dc_1; busy'],
  ['Webhook', "url: 'http://in.box/'", 'webhook inbox: created, but still on: sluice off wh_1; busy'],
])('reports that a %s is still on if it was created, but not switched off', async (kind, spec, message) => {
  const input = `apiVersion: sluice.dev/v1\nkind: ${kind}\nmetadata: {name: inbox}\nspec: {active: false, ${spec}}`;
  const { session } = terminal({ webhooks: [], input });
  const busy = async () => Promise.reject(new SluiceError(429, { detail: 'busy' }));
  Object.assign(session.sluice, {
    createSource: async () => ({ data: { id: 'dc_1' } }),
    createWebhook: async () => ({ data: { id: 'wh_1' } }),
    ...{ patchSource: busy, patchWebhook: busy },
  });
  await expect(apply(session, { file: '-' })).rejects.toMatchObject({ status: 429, message });
});

it('creates a webhook with a description that is too long for a URL', async () => {
  const description = '長'.repeat(4000);
  const { session } = terminal({ webhooks: [], input: manifest.replace('{url:', `{description: ${description}, url:`) });
  const requests: object[] = [];
  Object.assign(session.sluice, { createWebhook: async (request: object) => (requests.push(request), { data: { id: 'wh_1' } }) });
  await apply(session, { file: '-' });
  expect(requests).toEqual([{ body: { url: 'http://in.box/', name: 'inbox', description, external_id: 'sluice.dev/inbox' } }]);
});
