import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { loadAll } from 'js-yaml';
import type { SluiceClient } from '@sluice/client';
import type { Session } from '../session/session.js';
import { exportAll } from './export.js';
import { parseManifests } from './manifest.js';
import { Plan } from './plan.js';
import { MASK } from './prop-values.js';

const CODE = 'export default {}';
const COMPONENT = {
  ...{ id: 'sc_1', code: CODE, code_hash: createHash('sha256').update(CODE).digest('hex') },
  configurable_props: [
    { name: 'chat', type: 'app' },
    { name: 'token', type: 'string', secret: true },
    { name: 'tokens', type: 'string[]', secret: true },
    { name: 'timer', type: '$.interface.timer' },
    { name: 'object', type: 'object' },
  ],
};

/** The manifests and warnings of `sluice export` for an account with these resources, and what `apply` in the same account would change. */
async function exported(account: {
  sources?: { id?: string; name: string; name_slug?: string; props?: object; external_id?: string }[];
  webhooks?: { id?: string; name: string | null; url?: string; active?: boolean; external_id?: string }[];
  subscriptions?: object[];
  autoSubscriptions?: object[];
  connections?: object[];
  folder?: string;
}) {
  let printed = '';
  const warnings: string[] = [];
  const notes: string[] = [];
  const lists: Record<string, object[]> = {
    listSources: (account.sources ?? []).map(({ props = {}, ...source }) => ({
      ...{ id: `dc_${source.name}`, name_slug: source.name, active: true, component_id: COMPONENT.id, configured_props: props },
      ...source,
    })),
    listWebhooks: (account.webhooks ?? []).map((webhook) => ({
      id: `wh_${webhook.name}`,
      url: 'http://in.box/',
      active: true,
      ...webhook,
    })),
    listSubscriptions: account.subscriptions ?? [],
    listConnections: account.connections ?? [],
    listAutoSubscriptions: account.autoSubscriptions ?? [],
    listRegistry: [],
  };
  const session = {
    print: (text: string) => (printed += text),
    warn: (text: string) => warnings.push(text),
    note: (text: string) => notes.push(text),
    sluice: {
      ...Object.fromEntries(Object.entries(lists).map(([name, data]) => [name, async () => ({ data })])),
      each: async function* (page: (query: object) => Promise<{ data: object[] }>) {
        yield* (await page({})).data;
      },
      getCurrentUser: async () => ({ data: { id: 'u_1' } }),
      getComponent: async () => ({ data: COMPONENT }),
    },
  };
  await exportAll(session as unknown as Session, account.folder);
  const changes = async (env: Record<string, string> = {}, text = printed): Promise<string[]> => {
    const steps = await Plan.of(session.sluice as unknown as SluiceClient, parseManifests(text, 'all.yaml', '/'), { env });
    return steps.filter(({ action }) => action !== 'none').map((step) => [step.action, step.what, ...step.changes].join(' '));
  };
  const documents = loadAll(printed) as { kind: string; metadata: { name: string }; spec: { props?: object } }[];
  return { documents, warnings, notes, changes, printed };
}

it('exports inline credentials as variables, without the connection that only their source has', async () => {
  const { documents, warnings } = await exported({
    sources: [{ name: 'chatter', props: { chat: { authProvisionId: 'apn_own', $auth: { key: MASK, 'the-token': MASK } } } }],
  });
  expect(documents[0]!.spec.props).toEqual({
    chat: {
      $auth: {
        key: { valueFrom: { env: 'SLUICE_SECRET_CHATTER_CHAT_AUTH_KEY' } },
        'the-token': { valueFrom: { env: 'SLUICE_SECRET_CHATTER_CHAT_AUTH_THE_TOKEN' } },
      },
    },
  });
  expect(warnings).toEqual(['2 secret(s) are not exported: set the variables SLUICE_SECRET_… before you apply']);
});

it.each([
  [{ any: { valueFrom: { file: '/etc/hostname' } } }],
  [{ any: { deep: [{ valueFrom: { env: 'HOME' } }] } }],
  [{ any: { valueFrom: { value: { valueFrom: { env: 'HOME' } } } } }],
  [{ valueFrom: { file: '/etc/hostname' } }],
  [{ chat: { valueFrom: { env: 'HOME' } } }],
])('exports %j so that apply reads no variable or file', async (props) => {
  const { changes, warnings } = await exported({ sources: [{ name: 'mine', props }] });
  expect(await changes({ HOME: '/root' })).toEqual([]);
  expect(warnings).toEqual([]);
});

it('exports secrets that are not texts as variables with JSON', async () => {
  const { documents, changes } = await exported({ sources: [{ name: 'mine', props: { token: MASK, tokens: MASK } }] });
  expect(documents[0]!.spec.props).toEqual({
    token: { valueFrom: { env: 'SLUICE_SECRET_MINE_TOKEN' } },
    tokens: { valueFrom: { env: 'SLUICE_SECRET_MINE_TOKENS', json: true } },
  });
  expect(await changes({ SLUICE_SECRET_MINE_TOKEN: '["', SLUICE_SECRET_MINE_TOKENS: '["a"]' })).toEqual([]);
});

it.each([
  [{ cron: null, interval_seconds: 60 }, { intervalSeconds: 60 }],
  [{ cron: '0 9 * * 1', interval_seconds: null }, { cron: '0 9 * * 1' }],
  [
    { cron: '0 9 * * 1', interval_seconds: null, timezone: 'Europe/Rome' },
    { cron: '0 9 * * 1', timezone: 'Europe/Rome' },
  ],
])('exports the timer %j as users write it', async (timer, written) => {
  const { documents, changes } = await exported({ sources: [{ name: 'ticks', props: { timer, object: timer } }] });
  expect(documents[0]!.spec.props).toEqual({ timer: written, object: timer });
  expect(await changes()).toEqual([]);
});

it('exports each named connection as one variable, also if another one has the same name', async () => {
  const uses = (name: string, authProvisionId: string) => ({ name, props: { chat: { authProvisionId } } });
  const { documents, warnings } = await exported({
    sources: [uses('c', 'apn_1'), uses('b', 'apn_2'), uses('a', 'apn_1')],
    connections: [
      { id: 'apn_1', name: 'chat' },
      { id: 'apn_2', name: 'chat' },
    ],
  });
  const connection = (env: string) => ({ chat: { authProvisionId: { valueFrom: { env } } } });
  expect(documents.map(({ spec }) => spec.props)).toEqual([
    connection('SLUICE_CONNECTION_CHAT'),
    connection('SLUICE_CONNECTION_CHAT_2'),
    connection('SLUICE_CONNECTION_CHAT'),
  ]);
  expect(warnings).toEqual([
    '2 connection(s) are not exported: create them, and set the variables SLUICE_CONNECTION_… to their ids before you apply',
  ]);
});

it('exports a subscription to all emitters of the account without the id of the account', async () => {
  const { documents } = await exported({
    webhooks: [{ name: 'inbox' }],
    subscriptions: [{ id: 'sub_1', emitter_id: 'u_1', listener_id: 'wh_inbox', event_name: '' }],
  });
  expect(documents[1]).toMatchObject({ kind: 'Subscription', spec: { emitter: 'account', listener: 'webhook/inbox' } });
});

it('exports subscriptions with the oldest first, as sources and webhooks, so that importing keeps their order', async () => {
  const { documents } = await exported({
    subscriptions: ['new', 'old'].map((event_name) => ({ id: event_name, emitter_id: 'dc_*', listener_id: 'p_1', event_name })),
    autoSubscriptions: ['new', 'old'].map((event_name) => ({ id: event_name, listener_id: 'p_1', event_name })),
  });
  const streams = documents.map(({ spec }) => (spec as { event_name?: string }).event_name);
  expect(streams).toEqual(['old', 'new', 'old', 'new']);
});

it('makes no folder for the code of components if there is none', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-export-'));
  const { notes } = await exported({ folder, webhooks: [{ name: 'inbox' }] });
  expect([readdirSync(folder), notes]).toEqual([['sluice.yaml'], [`wrote 1 manifest to ${folder}`]]);
  rmSync(folder, { recursive: true });
});

it('warns about external ids that apply has not set', async () => {
  const { warnings } = await exported({
    sources: [{ name: 'mine', external_id: 'customer-17' }, { name: 'none' }],
    webhooks: [
      { name: 'inbox', external_id: 'customer-18' },
      { name: 'applied', external_id: 'sluice.dev/applied' },
    ],
  });
  expect(warnings).toEqual(['2 external id(s) are not exported, because apply sets its own: dc_mine, wh_inbox']);
});

it('warns about workflows, which it does not export', async () => {
  const between = (emitter_id: string, listener_id: string) => ({ id: 'sub_1', emitter_id, listener_id, event_name: '' });
  const { warnings } = await exported({
    webhooks: [{ name: 'inbox' }],
    subscriptions: [between('p_1', 'wh_inbox'), between('dc_*', 'p_2'), between('p_1', 'p_2'), between('p_*', 'wh_inbox')],
    autoSubscriptions: [{ id: 'asub_1', listener_id: 'p_3', event_name: '' }],
  });
  expect(warnings).toEqual(['3 workflow(s) are not exported, but must exist before you apply: p_1, p_2, p_3']);
});

it('gives thousands of webhooks and connections of one name different names', async () => {
  const webhooks = Array.from({ length: 2000 }, (_, n) => ({ id: `wh_${n}`, name: 'example.com' }));
  const connections = webhooks.map(({ id, name }) => ({ id: `apn_${id}`, name }));
  const sources = connections.map(({ id }) => ({ name: id, props: { chat: { authProvisionId: id } } }));
  const { documents } = await exported({ webhooks, connections, sources });
  expect(new Set(documents.map(({ metadata }) => metadata.name)).size).toBe(documents.length);
  expect(new Set(documents.map(({ spec }) => JSON.stringify(spec.props))).size).toBe(connections.length + 1);
});

it('names long sources, webhooks and subscriptions so that apply accepts them', async () => {
  const long = 'a'.repeat(255);
  const { documents } = await exported({
    sources: [{ name: long }],
    webhooks: [
      { name: `${long}1`, external_id: '1' },
      { name: `${long}2`, external_id: '2' },
    ],
    subscriptions: [{ id: 'sub_1', emitter_id: `dc_${long}`, listener_id: `wh_${long}1`, event_name: 'b'.repeat(200) }],
  });
  const text = documents.map((document) => `---\n${JSON.stringify(document)}`).join('\n');
  const names = parseManifests(text, 'all.yaml', '/').map(({ name }) => name);
  expect(names.slice(0, 3)).toEqual([long.slice(0, 100), `${long.slice(0, 98)}-2`, long.slice(0, 100)]);
  expect(documents.map(({ spec }) => spec)).toMatchObject([{ name: `${long}2` }, { name: `${long}1` }, { name: long }, {}]);
});

it('writes code inside the folder, even if a server calls a source ../../escaped', async () => {
  const parent = mkdtempSync(join(tmpdir(), 'sluice-export-'));
  const folder = join(parent, 'export');
  try {
    await exported({ sources: [{ name: '../../escaped' }], folder });
    expect(readFileSync(join(folder, 'components', 'escaped.mjs'), 'utf8')).toBe(COMPONENT.code);
  } finally {
    rmSync(parent, { recursive: true });
  }
});

const [A, B] = ['http://a.test/', 'http://b.test/'];

/** Newest first, as the API lists them. */
const TWINS: Record<string, { id: string; name: string | null; url: string; active: boolean; external_id?: string }[]> = {
  'two of one name and URL': [
    { id: 'wh_2', name: 'x', url: A, active: false },
    { id: 'wh_1', name: 'x', url: A, active: true },
  ],
  'two without a name and of one URL': [
    { id: 'wh_2', name: null, url: A, active: false },
    { id: 'wh_1', name: null, url: A, active: true },
  ],
  'two of one name with URLs that differ': [
    { id: 'wh_2', name: 'x', url: B, active: false },
    { id: 'wh_1', name: 'x', url: A, active: true },
  ],
  'one whose name is a number that export makes': [
    { id: 'wh_3', name: 'x-2', url: A, active: true },
    { id: 'wh_2', name: 'x', url: A, active: false },
    { id: 'wh_1', name: 'x', url: A, active: true },
  ],
  'one that apply has created with the name of an older one': [
    { id: 'wh_2', name: 'x', url: A, active: false, external_id: 'sluice.dev/x' },
    { id: 'wh_1', name: 'x', url: A, active: true },
  ],
  'two of one long name': [
    { id: 'wh_2', name: 'x'.repeat(150), url: A, active: false },
    { id: 'wh_1', name: 'x'.repeat(150), url: A, active: true },
  ],
};

const NAMED_AFTER_AN_ID = [
  { id: 'wh_2', name: null, url: A, active: false },
  { id: 'wh_1', name: 'wh_2', url: A, active: true },
];

it.each([...Object.entries(TWINS), ['one that is called like the id of another', NAMED_AFTER_AN_ID] as const])(
  'applies an export of webhooks without a change: %s',
  async (_, webhooks) => {
    const { changes } = await exported({
      webhooks,
      sources: [{ name: 'orders' }],
      subscriptions: webhooks.map(({ id }) => ({ id: `sub_${id}`, emitter_id: 'dc_orders', listener_id: id, event_name: '' })),
      autoSubscriptions: webhooks.slice(1).map(({ id }) => ({ id: `asub_${id}`, listener_id: id, event_name: '' })),
    });
    expect(await changes()).toEqual([]);
  },
);

it.each(Object.entries(TWINS))('applies a change of the URL in an export to its webhook only: %s', async (_, webhooks) => {
  for (const n of webhooks.keys()) {
    const { documents, changes } = await exported({ webhooks });
    const edited = documents.map((document, at) =>
      at === n ? { ...document, spec: { ...document.spec, url: 'http://new.test/' } } : document,
    );
    const text = edited.map((document) => `---\n${JSON.stringify(document)}\n`).join('');
    expect(await changes({}, text)).toEqual([`update webhook ${documents[n]!.metadata.name} url`]);
  }
});

it('applies a swap of two URLs in an export to both webhooks', async () => {
  const { printed, changes } = await exported({ webhooks: TWINS['two of one name with URLs that differ'] });
  const swapped = printed.replace(/a\.test|b\.test/g, (host) => (host === 'a.test' ? 'b.test' : 'a.test'));
  expect(await changes({}, swapped)).toEqual(['update webhook x url', 'update webhook x-2 url']);
});

it('applies an export without a change after someone has created another webhook of the name and URL', async () => {
  const webhooks = TWINS['two of one name and URL']!;
  const { printed } = await exported({ webhooks });
  const { changes } = await exported({ webhooks: [{ id: 'wh_3', name: 'x', url: A, active: false }, ...webhooks] });
  expect(await changes({}, printed)).toEqual([]);
});

it('subscribes the webhook that has a number or an id in the export, also if its manifest is not applied', async () => {
  const { printed, changes } = await exported({
    webhooks: [
      { id: 'wh_4', name: 'x', url: A },
      { id: 'wh_3', name: 'x', url: A },
      { id: 'wh_2', name: null, url: A },
      { id: 'wh_1', name: null, url: A },
    ],
    subscriptions: ['wh_1', 'wh_2', 'wh_4'].map((id) => ({ id: `sub_${id}`, emitter_id: 'u_1', listener_id: id, event_name: '' })),
  });
  const subscriptions = printed.split('---\n').filter((document) => document.includes('kind: Subscription'));
  expect(subscriptions).toHaveLength(3);
  expect(await changes({}, subscriptions.join('---\n'))).toEqual([]);
});

it.each([
  {
    are: 'one that apply has created with the slug of an older one',
    sources: [
      { id: 'dc_2', name: 'y', external_id: 'sluice.dev/x' },
      { id: 'dc_1', name: 'x' },
    ],
  },
  {
    are: 'two of one long name',
    sources: [
      { id: 'dc_2', name: 'x'.repeat(150), name_slug: `${'x'.repeat(150)}-1` },
      { id: 'dc_1', name: 'x'.repeat(150) },
    ],
  },
])('applies an export of sources without a change: $are', async ({ sources }) => {
  const { changes } = await exported({ sources });
  expect(await changes()).toEqual([]);
});
