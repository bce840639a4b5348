import { describe, expect, it } from '@jest/globals';
import { SluiceError } from '@sluice/client';
import { type Format, listText } from '../session/output.js';
import type { Session } from '../session/session.js';
import { get, list, remove, switchOff } from './commands.js';
import { findEmitter, findEmitterOrAccount, findListener, findSource } from './find.js';
import { deploy } from '../code/deploy.js';
import { replay } from '../streams/deliveries.js';
import { publish } from '../streams/publish.js';
import { recover, retry, test } from '../streams/retry.js';
import { run } from '../streams/runs.js';
import { trigger } from '../streams/trigger.js';
import { open } from '../tools/open.js';
import { subscribe, unsubscribe } from './subscribe.js';

const OWN_COMPONENT = { id: 'sc_own', name: 'Own' };

/** A terminal of an account with these sources and a component, and nothing else. */
function terminal(sources: object[], format = 'table', { isInteractive = false, webhooks = [] as object[] } = {}) {
  const notes: string[] = [];
  const asked: string[] = [];
  const items: unknown[] = [];
  const none = async () => ({ data: [] });
  const one =
    (all: object[]) =>
    async ({ path }: { path: { id: string } }) => {
      const data = all.find((each) => (each as { id: string }).id === path.id);
      if (!data) throw new SluiceError(404, {});
      return { data };
    };
  const session = {
    ...{
      format,
      list: () => {},
      note: (text: string) => notes.push(text),
      item: (item: unknown) => items.push(item),
      isInteractive,
      confirm: async (question: string) => void asked.push(question),
    },
    sluice: {
      each: async function* (page: (query: object) => Promise<{ data: object[] }>) {
        yield* (await page({})).data;
      },
      ...{
        listWebhooks: async () => ({ data: webhooks }),
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
      ...{ getSource: one(sources), getWebhook: one(webhooks), getConnection: one([]) },
      listSources: async () => ({ data: sources }),
      patchSource: async ({ body }: { body: object }) => ({ data: { id: 'dc_1', ...body } }),
      deleteSource: async () => undefined,
    },
  };
  return { session: session as unknown as Session, notes, items, asked };
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
  await expect(findEmitter(session.sluice, 'none')).rejects.toThrow(
    'no source is called none; sluice list sources lists them; a workflow is given by its id, p_…',
  );
  await expect(get(session, ['webhook'])).rejects.toThrow('no resource is called webhook; give its name, too: webhook NAME');
});

it.each(['.', '..'])('%s is nothing, and no path of the API', async (name) => {
  const { session } = terminal([orders]);
  Object.assign(session.sluice, { getComponent: () => Promise.reject(new TypeError('GET /v1/components/{keyOrId} needs path.keyOrId')) });
  await expect(get(session, [name])).rejects.toMatchObject({ code: 4 });
  await expect(deploy(session, name, {})).rejects.toMatchObject({
    code: 2,
    message: expect.stringMatching(/ is not a file, a URL or the key/),
  });
  await expect(
    retry(terminal([], 'table', { webhooks: [{ id: 'wh_1', name: 'inbox' }] }).session, 'inbox', name, { wait: true }),
  ).rejects.toMatchObject({ code: 4 });
});

it('a workflow cannot be listed or shown, and the message says how to read its events', async () => {
  const { session } = terminal([orders]);
  const message = 'workflows are registered over Kafka and cannot be listed; `sluice events p_…` reads the events of one';
  await expect(list(session, 'workflows', {})).rejects.toMatchObject({ code: 2, message });
  await expect(get(session, ['workflow', 'p_1'])).rejects.toMatchObject({ code: 2, message });
  await expect(get(session, ['p_1'])).rejects.toMatchObject({
    code: 4,
    message: 'no resource is called p_1; if it is a workflow, `sluice events p_1` reads its events',
  });
});

it('an unknown kind is wrong usage, and the message names the kinds', async () => {
  const { session } = terminal([orders]);
  await expect(list(session, 'widgets', {})).rejects.toMatchObject({
    code: 2,
    message: expect.stringMatching(/^there is no kind widgets; known are sources, webhooks, /),
  });
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

it('an empty name is an error, and not the beginning of all names', async () => {
  const { session } = terminal([orders], 'table', { isInteractive: true });
  await expect(findEmitter(session.sluice, '')).rejects.toMatchObject({ code: 2, message: 'the name of a source is required' });
  await expect(get(session, [''])).rejects.toThrow('the name of a resource is required');
});

it('a refused subscription leaves no new webhook', async () => {
  const { session, notes } = terminal([orders]);
  const deleted: string[] = [];
  Object.assign(session.sluice, {
    createWebhook: async () => ({ data: { id: 'wh_new', name: 'in.box' } }),
    createSubscription: async () => Promise.reject(new SluiceError(400, { detail: 'event_name is bad' })),
    deleteWebhook: async ({ path }: { path: { id: string } }) => deleted.push(path.id),
  });
  await expect(subscribe(session, 'orders', 'http://in.box/', { stream: '$bogus' })).rejects.toThrow('event_name is bad');
  expect([deleted, notes]).toEqual([['wh_new'], []]);
});

describe('a URL that several webhooks have', () => {
  const [newer, older] = ['wh_2', 'wh_1'].map((id) => ({ id, name: null, url: 'https://example.com/h', active: true }));
  const given = (subscribed: string[]) => {
    const all = terminal([orders], 'json', { webhooks: [newer!, older!] });
    const subscriptions = [
      ...subscribed.map((listener_id) => ({ emitter_id: 'dc_1', listener_id, event_name: '' })),
      { emitter_id: 'dc_1', listener_id: 'wh_2', event_name: '$errors' },
      { emitter_id: 'dc_9', listener_id: 'wh_2', event_name: '' },
    ];
    const changed: string[] = [];
    const change = async ({ query }: { query: { listener_id: string } }) => (changed.push(query.listener_id), { data: [{}] });
    Object.assign(all.session.sluice, {
      ...{ listSubscriptions: async () => ({ data: subscriptions }), createSubscription: change, deleteSubscription: change },
    });
    return { ...all, changed };
  };

  it('is that of the oldest one for subscribe, so that subscribing again changes nothing when there is a newer one', async () => {
    const { session, changed } = given(['wh_1']);
    await subscribe(session, 'orders', 'https://example.com/h', {});
    expect(changed).toEqual(['wh_1']);
  });

  it.each([
    [['wh_1'], 'wh_1'],
    [['wh_2'], 'wh_2'],
    [[], 'wh_1'],
  ])('is that of the subscribed one for unsubscribe: %j', async (subscribed, expected) => {
    const { session, changed } = given(subscribed);
    await unsubscribe(session, 'orders', 'https://example.com/h', {});
    expect(changed).toEqual([expected]);
  });

  it('is ambiguous for unsubscribe if several are subscribed', async () => {
    const { session, changed } = given(['wh_1', 'wh_2']);
    await expect(unsubscribe(session, 'orders', 'https://example.com/h', {})).rejects.toMatchObject({
      ...{ code: 2, message: 'the webhook https://example.com/h is ambiguous: webhook (wh_1), webhook (wh_2); give its id' },
    });
    expect(changed).toEqual([]);
  });
});

describe('a beginning of a name', () => {
  const other = { id: 'dc_2', name: 'orders-eu', name_slug: 'orders-eu', active: true };

  it('is not enough for a script to delete, switch off or unsubscribe: repeating the command would change another resource', async () => {
    const { session } = terminal([other]);
    const refused = { code: 4, message: expect.stringContaining('is called orders; if you mean orders-eu, give its whole name') };
    await expect(remove(session, ['source', 'orders'], {})).rejects.toMatchObject(refused);
    await expect(switchOff(session, ['orders'])).rejects.toMatchObject(refused);
    await expect(unsubscribe(session, 'orders', 'wh_1', {})).rejects.toMatchObject(refused);
    await expect(remove(terminal([other], 'table', { isInteractive: true }).session, ['orders'], { yes: true })).rejects.toMatchObject(
      refused,
    );
  });

  it.each<[string, (session: Session) => Promise<void>]>([
    ['publish', (session) => publish(session, 'orders', { data: '1' })],
    ['run', (session) => run(session, 'orders', { wait: false })],
    ['trigger', (session) => trigger(session, 'orders', { data: '1' })],
    ['retry', (session) => retry(session, 'orders', 'del_1', { wait: false })],
    ['test', (session) => test(session, 'orders')],
    ['recover', (session) => recover(session, 'orders', { since: '0' })],
    ['subscribe', (session) => subscribe(session, 'orders', 'wh_1', {})],
    ['subscribe to', (session) => subscribe(session, 'dc_2', 'orders', {})],
    ['replay', (session) => replay(session, 'orders', 'wh_1', { from: '0', wait: false })],
    ['replay to', (session) => replay(session, 'dc_2', 'orders', { from: '0', wait: false })],
  ])('is not enough for a script to %s', async (_, command) => {
    const webhooks = [{ id: 'wh_1', name: 'orders-inbox' }];
    await expect(command(terminal([other], 'table', { webhooks }).session)).rejects.toMatchObject({
      ...{ code: 4, message: expect.stringMatching(/is called orders; if you mean orders-\w+( or orders-eu)?, give its whole name$/) },
    });
  });

  it('suggests none of the names if many have it', async () => {
    const all = ['orders-a', 'orders-b', 'orders-c', 'orders-d'].map((name) => ({ ...other, id: `dc_${name}`, name, name_slug: name }));
    await expect(switchOff(terminal(all).session, ['orders'])).rejects.toThrow('; 4 names begin with it: give the whole name');
    await expect(switchOff(terminal(all.slice(1)).session, ['orders'])).rejects.toThrow(
      '; if you mean orders-b or orders-c or orders-d, give',
    );
  });

  it('is enough at a terminal to subscribe, which shows the names of both ends', async () => {
    const { session, notes } = terminal([other], 'table', { isInteractive: true, webhooks: [{ id: 'wh_1', name: 'inbox' }] });
    Object.assign(session.sluice, { createSubscription: async () => ({ data: [{}] }) });
    await subscribe(session, 'ord', 'inb', {});
    expect(notes).toEqual(['inbox gets the events of orders-eu']);
  });

  it('is enough at a terminal, where a person confirms the resource', async () => {
    const { session, asked, notes } = terminal([other], 'table', { isInteractive: true });
    await switchOff(session, ['orders']);
    await switchOff(session, ['orders-eu']);
    await remove(session, ['orders'], {});
    expect(asked).toEqual(['Switch the source orders-eu off?', 'Delete the source orders-eu (dc_2)?']);
    expect(notes).toHaveLength(3);
  });
});

it('reads only the resource that has the id, and lists nothing', async () => {
  const { session, items, notes } = terminal([orders], 'table', { webhooks: [{ id: 'wh_1', name: 'inbox', active: true }] });
  const unlisted = async () => Promise.reject(new Error('listed'));
  for (const name of Object.keys(session.sluice).filter((each) => each.startsWith('list')))
    Object.assign(session.sluice, { [name]: unlisted });
  Object.assign(session.sluice, { deleteWebhook: async () => undefined });
  await get(session, ['dc_1']);
  await get(session, ['webhook', 'wh_1']);
  await switchOff(session, ['dc_1']);
  expect(await findEmitter(session.sluice, 'dc_1')).toBe('dc_1');
  expect(await findListener(session.sluice, 'wh_1')).toEqual({ id: 'wh_1', name: 'inbox' });
  await remove(session, ['wh_1'], {});
  expect([items, notes]).toEqual([
    [orders, { id: 'wh_1', name: 'inbox', active: true }],
    ['source orders is off', 'deleted webhook inbox (wh_1)'],
  ]);
});

it('an id finds the resource that has it, and not one that is named like it', async () => {
  const { session } = terminal([{ ...orders, id: 'dc_2', name: 'dc_1', name_slug: 'dc_1' }, orders]);
  expect(await findSource(session.sluice, 'dc_1')).toEqual(orders);
});

describe('a name that looks like an id', () => {
  const named = (name: string) => ({ ...orders, name, name_slug: name });

  it.each(['wh_x', 'p_x', 'u_x', 'dc_x'])('is found: %s', async (name) => {
    const { session, items } = terminal([named(name)], 'json');
    await switchOff(session, [name]);
    expect(items).toHaveLength(1);
    expect(await findEmitter(session.sluice, name)).toBe('dc_1');
    expect(await findListener(session.sluice, name)).toEqual({ id: 'dc_1', name });
    expect(await findEmitterOrAccount(session.sluice, name)).toEqual({ id: 'dc_1', name });
  });

  it('is an id where nothing has it as its name', async () => {
    const { session } = terminal([orders, named('wh_x')], 'table', { webhooks: [{ id: 'wh_x', name: 'inbox' }] });
    expect(await findEmitterOrAccount(session.sluice, 'p_x')).toMatchObject({ id: 'p_x' });
    expect(await findEmitterOrAccount(session.sluice, 'u_x')).toMatchObject({ id: 'u_x' });
    expect(await findListener(session.sluice, 'wh_x')).toMatchObject({ id: 'wh_x' });
  });
});

describe('a source that is called like a component of the registry', () => {
  const registered = { id: 'dc_1', name: 'Registered', name_slug: 'own-key-of-the-registry', active: true, configured_props: {} };

  it.each(['own-key-of-the-registry', 'Registered', 'own-key-of'])('is found: %s', async (name) => {
    const { session, items } = terminal([registered]);
    Object.assign(session.sluice, { getSource: async () => ({ data: registered }) });
    await get(session, [name]);
    expect(items).toEqual([registered]);
  });

  it('is deleted, switched and opened', async () => {
    const { session, notes } = terminal([registered]);
    await switchOff(session, ['Registered']);
    await remove(session, ['Registered'], {});
    expect(notes).toEqual(['source own-key-of-the-registry is off', 'deleted source own-key-of-the-registry (dc_1)']);
    await expect(open(session, 'Registered')).rejects.toThrow('Registered has no address');
  });
});

it('list subscriptions names their ends in a table, and gives programs the ids', async () => {
  const subscriptions = [
    { id: 'sub_2', emitter_id: 'dc_1', listener_id: 'wh_1', event_name: '$errors' },
    { id: 'sub_1', emitter_id: 'dc_*', listener_id: 'p_1', event_name: '' },
  ];
  const listed = async (format: string, kind: string): Promise<string> => {
    const { session } = terminal([orders], format, { webhooks: [{ id: 'wh_1', name: 'inbox' }] });
    let text = '';
    Object.assign(session, {
      list: (...[items, columns]: Parameters<Session['list']>) => (text = listText(items, columns, format as Format)),
    });
    const data = async () => ({ data: subscriptions });
    Object.assign(session.sluice, { listSubscriptions: data, listAutoSubscriptions: data });
    await list(session, kind, {});
    return text;
  };
  expect(await listed('table', 'subscriptions')).toBe(
    'ID     EMITTER  STREAM   LISTENER\nsub_2  orders   $errors  inbox\nsub_1  dc_*     default  p_1\n',
  );
  expect(await listed('table', 'auto-subscriptions')).toContain('sub_2  $errors  inbox\n');
  expect(JSON.parse(await listed('json', 'subscriptions'))).toEqual(subscriptions);
  expect(await listed('id', 'subscriptions')).toBe('sub_2\nsub_1\n');
});

it('get shows the props of a component instead of its code, unless the output is for programs', async () => {
  const component = { id: 'sc_own', code: 'export default {}', configurable_props: [] };
  for (const [format, expected] of [
    ['table', { id: 'sc_own', configurable_props: [] }],
    ['json', component],
  ] as const) {
    const { session, items } = terminal([], format);
    Object.assign(session.sluice, { getComponent: async () => ({ data: component }) });
    await get(session, ['component', 'sc_own']);
    expect(items).toEqual([expected]);
  }
});

it('a command searches only the kinds that it can change', async () => {
  const { session, notes } = terminal([], 'table', { webhooks: [{ id: 'wh_1', name: 'inbox', active: true }] });
  Object.assign(session.sluice, {
    listConnections: async () => ({ data: [{ id: 'apn_1', name: 'inbox', app: 'slack' }] }),
    patchWebhook: async () => ({ data: {} }),
  });
  await switchOff(session, ['inbox']);
  expect(notes).toEqual(['webhook inbox is off']);
  await expect(remove(session, ['inbox'], {})).rejects.toThrow(/^the resource inbox is ambiguous: .*; give its id$/);
  await expect(remove(session, ['own-key'], {})).rejects.toThrow('no resource is called own-key');
  await expect(remove(session, ['component', 'own-key'], {})).rejects.toThrow('a component cannot be deleted');
});

describe('the app of a connection, and the beginning of a key that is shown', () => {
  const connection = { id: 'apn_1', name: 'support', app: 'slack' };
  const key = { id: 'key_1', name: 'ci', prefix: 'slk_ab12' };
  const given = () => {
    const all = terminal([]);
    Object.assign(all.session.sluice, {
      listConnections: async () => ({ data: [connection] }),
      listKeys: async () => ({ data: [key] }),
      getConnection: async () => ({ data: connection }),
      ...Object.fromEntries(['deleteConnection', 'deleteKey'].map((name) => [name, async () => undefined])),
    });
    return all;
  };

  it('are enough to search and to show one', async () => {
    const { session, items, notes } = given();
    await get(session, ['slack']);
    await get(session, ['key', 'slk_ab12']);
    await list(session, 'connections', { search: 'slack' });
    expect([items, notes]).toEqual([[connection, key], []]);
  });

  it('the app of a connection and the beginning of a key delete nothing', async () => {
    const { session, notes } = given();
    for (const words of [['slack'], ['connection', 'slack'], ['slk_ab12'], ['key', 'slk_ab12']])
      await expect(remove(session, words, {})).rejects.toMatchObject({ code: 4 });
    await remove(session, ['support'], {});
    await remove(session, ['key', 'ci'], {});
    expect(notes).toEqual(['deleted connection support (apn_1)', 'deleted key ci (key_1)']);
  });
});

it('finds one of more sources than a function can have arguments', async () => {
  const { session } = terminal([...new Array(200_000).fill({ id: 'dc_2', name: 'other', name_slug: 'other' }), orders]);
  expect(await findEmitter(session.sluice, 'orders')).toBe('dc_1');
});
