import { describe, expect, it, jest } from '@jest/globals';
import { listText } from '../session/output.js';
import type { Session } from '../session/session.js';
import { deliveries, replay } from './deliveries.js';
import { errors, events } from './read-events.js';

const oneSource = {
  each: async function* (page: (query: object) => Promise<{ data: object[] }>) {
    yield* (await page({})).data;
  },
  listSources: async () => ({ data: [{ id: 'dc_1', name: 'orders', name_slug: 'orders' }] }),
};

/** An account with the source `orders`, whose events nobody receives. */
function terminal({
  stored = [
    { id: '1-0', metadata: { emit_id: 'em_1' } },
    { id: '2-0', metadata: { emit_id: 'del_7' } },
  ] as object[],
} = {}) {
  const notes: string[] = [];
  const asked: string[] = [];
  const listed: object[] = [];
  const session = {
    ...{ format: 'table', list: () => {}, printStyled: () => {}, note: (text: string) => notes.push(text) },
    sluice: {
      ...oneSource,
      listWebhooks: async () => ({ data: [] }),
      listSourceEvents: async ({ query, parseAs }: { query: { include?: string }; parseAs?: string }) => {
        listed.push(query);
        return parseAs === 'text' ? JSON.stringify({ data: stored }) : { data: stored };
      },
      listSourceEventDeliveries: async ({ path }: { path: { eventId: string } }) => (asked.push(path.eventId), { data: [] }),
    },
  };
  return { session: session as unknown as Session, notes, asked, listed };
}

it('deliveries of a source need an event, which has an id or an emit id; no listener is a remark', async () => {
  const { session, notes, asked } = terminal();
  await expect(deliveries(session, 'orders', undefined, {})).rejects.toThrow(
    'orders is a source or workflow: give the id of an event, too: sluice deliveries orders EVENT_ID (sluice events orders lists them)',
  );
  await expect(deliveries(session, 'none', undefined, {})).rejects.toThrow('no webhook is called none');
  await deliveries(session, 'orders', '7-0', {});
  await deliveries(session, 'orders', 'em_1', {});
  // in the form of a delivery id
  await deliveries(session, 'orders', 'del_7', {});
  expect([asked, notes]).toEqual([['7-0', '1-0', '2-0'], Array(3).fill('no listener was subscribed')]);
  await expect(deliveries(session, 'none', 'del_7', {})).rejects.toThrow('no webhook is called none');
  await expect(deliveries(session, 'orders', 'em_2', {})).rejects.toThrow('none of the last 100 events has the id or emit id em_2');
});

describe('deliveries of a webhook', () => {
  const attempt = { ts: 1, status_code: 500, duration_ms: 7, error: null, response_body: 'out of paper' };
  const delivery = {
    id: 'del_5',
    event_id: '1-0',
    emitter_id: 'dc_1',
    status: 'pending',
    attempts: [attempt],
    next_attempt_at: 1,
    created_at: 1,
  };
  const given = (active: boolean) => {
    const all = terminal();
    const items: unknown[] = [];
    Object.assign(all.session, { item: (item: unknown) => items.push(item) });
    Object.assign(all.session.sluice, {
      listWebhooks: async () => ({ data: [{ id: 'wh_1', name: 'inbox', active }] }),
      listDeliveries: async () => ({ page_info: { end_cursor: null }, data: [delivery] }),
    });
    return { ...all, items };
  };

  it('shows one with the response to each attempt', async () => {
    const { session, items } = given(true);
    await deliveries(session, 'inbox', 'del_5', {});
    expect(items).toEqual([delivery]);
    await expect(deliveries(session, 'inbox', 'del_6', {})).rejects.toMatchObject({
      ...{ code: 4, message: 'inbox has no delivery del_6; sluice deliveries inbox lists them' },
    });
  });

  it('reports that the webhook is off, because no attempt is made then', async () => {
    const [on, off] = [given(true), given(false)];
    for (const { session } of [on, off]) await deliveries(session, 'inbox', undefined, {});
    expect([on.notes, off.notes]).toEqual([[], ['inbox is off: sluice on inbox lets its deliveries continue']]);
  });
});

it('names the listeners of an event in a table', async () => {
  const { session } = terminal();
  let text = '';
  Object.assign(session, { list: (...[items, columns]: Parameters<Session['list']>) => (text = listText(items, columns, 'table')) });
  Object.assign(session.sluice, {
    listWebhooks: async () => ({ data: [{ id: 'wh_1', name: 'inbox' }] }),
    listSourceEventDeliveries: async () => ({
      data: ['wh_1', 'p_1'].map((listener_id) => ({ listener_id, status: 'pending', attempts: [] })),
    }),
  });
  await deliveries(session, 'orders', '1-0', {});
  expect(text).toMatch(/^LISTENER .*\ninbox .*\np_1 /);
});

it('an emit id is searched without the events themselves, which may be large', async () => {
  const { session, listed } = terminal();
  await deliveries(session, 'orders', 'em_1', {});
  expect(listed).toEqual([{ event_name: '*', limit: 100, include: 'id,metadata' }]);
});

it('events and errors without a result say so', async () => {
  const { session, notes } = terminal({ stored: [] });
  await events(session, 'orders', {});
  await events(session, 'orders', { stream: 'paid' });
  await errors(session, 'orders', {});
  expect(notes).toEqual(['no events yet', 'no events on the stream paid yet', 'no errors yet']);
});

it('events that follow are read only as fast as their reader takes them', async () => {
  const { session } = terminal();
  const read: string[] = [];
  const [taken, first] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  Object.assign(session, { endWithReader: () => {}, printNext: () => (first.resolve(), taken.promise) });
  Object.assign(session.sluice, {
    events: async function* () {
      for (const id of ['2-0', '3-0']) {
        read.push(id);
        yield { id, event: 1, indexed_at_ms: 1, metadata: { name: '' } };
      }
    },
  });
  const following = events(session, 'orders', { follow: true, number: '0' });
  await first.promise;
  await new Promise((resolve) => setImmediate(resolve));
  expect(read).toEqual(['2-0']);
  taken.resolve();
  await following;
  expect(read).toEqual(['2-0', '3-0']);
});

it('a replay without progress shows once which deliveries go first', async () => {
  const warnings: string[] = [];
  let looks = 0;
  const session = {
    ...{ format: 'table', note: () => {}, print: () => {}, progress: () => {}, warn: (text: string) => warnings.push(text) },
    sluice: {
      ...oneSource,
      listWebhooks: async () => ({ data: [{ id: 'wh_1', name: 'inbox' }] }),
      createReplay: async () => ({ data: { id: 'rpl_1', events: 1 } }),
      getReplay: async () => ({
        data: { id: 'rpl_1', events: 1, status: ++looks < 3 ? 'running' : 'done', delivered: looks < 3 ? 0 : 1, failed: 0 },
      }),
    },
  };
  const now = performance.now();
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => now + looks * 20_000);
  await replay(session as unknown as Session, 'orders', 'inbox', { from: '0', wait: true });
  clock.mockRestore();
  expect(warnings).toEqual(['no progress for 10 s: deliveries that wait for inbox go first; sluice deliveries inbox lists them']);
});

it('a replay fails if events were not delivered', async () => {
  const session = {
    ...{ format: 'table', note: () => {}, print: () => {}, progress: () => {} },
    sluice: {
      ...oneSource,
      listWebhooks: async () => ({ data: [{ id: 'wh_1', name: 'inbox' }] }),
      createReplay: async () => ({ data: { id: 'rpl_1', events: 3 } }),
      getReplay: async () => ({ data: { id: 'rpl_1', events: 3, status: 'done', delivered: 1, failed: 2 } }),
    },
  };
  await expect(replay(session as unknown as Session, 'orders', 'inbox', { from: '0', wait: true })).rejects.toThrow(
    '2 events not delivered: the first attempt failed and is retried on the usual schedule, the run failed, or the event was deleted',
  );
});
