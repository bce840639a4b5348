import { describe, expect, it } from '@jest/globals';
import { SluiceError } from '@sluice/client';
import type { Session } from '../session/session.js';
import { recover, retry, test } from './retry.js';

const attempt = (ts: number, status_code: number | null, error: string | null = null) => ({
  ...{ ts, status_code, duration_ms: 7, error, response_body: status_code === 500 ? 'out of paper' : null },
});
const delivery = (id: string, status: 'pending' | 'failed' | 'succeeded', attempts: object[], next_attempt_at: number | null = null) => ({
  ...{ id, event_id: '1-0', emitter_id: 'dc_1', status, attempts, next_attempt_at, created_at: 1_769_860_800 },
});

/** A terminal of an account with the webhook `inbox`. Each look at its deliveries shows the next of `lists`, and then the last one. */
function terminal({ lists, active = true, count = 0, format = 'table' }: Partial<Record<string, any>> & { lists: object[][] }) {
  const [printed, notes]: string[][] = [[], []];
  const items: unknown[] = [];
  let looks = 0;
  const session = {
    ...{ format, print: (text: string) => printed!.push(text), note: (text: string) => notes!.push(text), progress: () => {} },
    item: (item: unknown) => items.push(item),
    sluice: {
      each: async function* (page: (query: object) => Promise<{ data: object[]; page_info?: { end_cursor: string | null } }>) {
        for (let after: string | null | undefined; after !== null;) {
          const { data, page_info } = await page({ after });
          yield* data;
          after = data.length < 100 ? null : page_info!.end_cursor;
        }
      },
      listWebhooks: async () => ({ data: [{ id: 'wh_1', name: 'inbox', url: 'http://in.box/', active }] }),
      listDeliveries: async ({ query }: { query: { after?: string } }) => {
        const all = lists[Math.min(looks, lists.length - 1)]!;
        const rest = query.after === undefined ? all : all.slice(all.findIndex((each) => (each as { id: string }).id === query.after) + 1);
        const data = rest.slice(0, 100);
        if (rest.length <= 100) looks += 1;
        return { data, page_info: { end_cursor: (data.at(-1) as { id: string } | undefined)?.id ?? null } };
      },
      retryDelivery: async ({ path }: { path: { deliveryId: string } }) => ({
        data: delivery(path.deliveryId, 'pending', [attempt(1, 500)], 1_769_860_800),
      }),
      recoverDeliveries: async () => ({ data: { count } }),
    },
  };
  return { session: session as unknown as Session, printed: printed!, notes: notes!, items };
}

describe('retry', () => {
  const before = delivery('del_5', 'pending', [attempt(1, 500)], 1_769_860_800);

  it('waits for the next attempt, also of a delivery that newer ones move to a later page, and shows its outcome', async () => {
    const newer = Array.from({ length: 150 }, (_, n) => delivery(`del_9${1000 - n}`, 'succeeded', [attempt(2, 200)]));
    const after = delivery('del_5', 'succeeded', [attempt(1, 500), attempt(2, 204)]);
    const { session, printed } = terminal({ lists: [[before], [...newer, before], [...newer, after]] });
    await retry(session, 'inbox', 'del_5', { wait: true });
    expect(printed).toEqual(['succeeded: 204, 7 ms\n']);
  });

  it.each([
    [attempt(2, 500), 1_769_861_100, 'failed: 500, 7 ms; next attempt 2026-01-31T12:05:00Z\n', 'the receiver returned 500: out of paper'],
    [attempt(2, null, 'ECONNREFUSED'), null, 'failed: ECONNREFUSED, 7 ms; given up\n', 'the receiver did not respond: ECONNREFUSED'],
  ])('fails if the attempt fails: %j', async (last, next, line, reason) => {
    const after = delivery('del_5', next === null ? 'failed' : 'pending', [attempt(1, 500), last], next);
    const { session, printed } = terminal({ lists: [[before], [after]] });
    await expect(retry(session, 'inbox', 'del_5', { wait: true })).rejects.toMatchObject({ message: reason, code: 1 });
    expect(printed).toEqual([line]);
  });

  it('waits for the attempt that it has requested, not for one that was in progress', async () => {
    const began = 1_769_860_795_000;
    const inProgress = delivery('del_5', 'pending', [attempt(1, 500), { ...attempt(began, 500), duration_ms: 8000 }], 1_769_860_800);
    const after = delivery('del_5', 'succeeded', [...inProgress.attempts, attempt(began + 8100, 204)]);
    const { session, printed } = terminal({ lists: [[before], [inProgress], [after]] });
    await retry(session, 'inbox', 'del_5', { wait: true });
    expect(printed).toEqual(['succeeded: 204, 7 ms\n']);
  });

  it('says where the deliveries are listed if there is none of that id', async () => {
    const { session } = terminal({ lists: [[]] });
    Object.assign(session.sluice, { retryDelivery: () => Promise.reject(new SluiceError(404, { detail: 'delivery del_5 not found' })) });
    await expect(retry(session, 'inbox', 'del_5', { wait: true })).rejects.toMatchObject({
      ...{ code: 4, message: 'inbox has no delivery del_5; sluice deliveries inbox lists them' },
    });
  });

  it('reports that the delivery had already succeeded, because its event is delivered twice', async () => {
    const after = delivery('del_5', 'succeeded', [attempt(1, 204), attempt(2, 204)]);
    const { session, notes, printed } = terminal({ lists: [[after]] });
    const due = delivery('del_5', 'pending', [attempt(1, 204)], 1_769_860_800);
    Object.assign(session.sluice, { retryDelivery: async () => ({ data: due }) });
    await retry(session, 'inbox', 'del_5', { wait: true });
    expect([notes, printed]).toEqual([['del_5 had already succeeded: its event is delivered again'], ['succeeded: 204, 7 ms\n']]);
  });

  it('returns at once with --no-wait, and never waits for a webhook that is off', async () => {
    const { session, notes, printed } = terminal({ lists: [[before]] });
    await retry(session, 'inbox', 'del_5', { wait: false });
    expect([notes, printed]).toEqual([['del_5 is due now; sluice deliveries inbox shows the outcome'], []]);
    await expect(retry(terminal({ lists: [[before]], active: false }).session, 'inbox', 'del_5', { wait: true })).rejects.toThrow(
      'inbox is off: sluice on inbox',
    );
  });
});

describe('test', () => {
  it('sends a test event, and shows the response', async () => {
    const { session, printed } = terminal({ lists: [[]] });
    const sent: unknown[] = [];
    Object.assign(session.sluice, { testWebhook: async (request: unknown) => (sent.push(request), { data: attempt(1, 204) }) });
    await test(session, 'inbox');
    expect([sent, printed]).toEqual([[{ path: { id: 'wh_1' } }], ['succeeded: 204, 7 ms\n']]);
  });

  it.each([
    [attempt(1, 500), 'failed: 500, 7 ms\n', 'the receiver returned 500: out of paper'],
    [attempt(1, 301), 'failed: 301, 7 ms\n', 'the receiver returned 301'],
    [attempt(1, null, 'ECONNREFUSED'), 'failed: ECONNREFUSED, 7 ms\n', 'the receiver did not respond: ECONNREFUSED'],
  ])('exits with 1 if the receiver fails: %j', async (data, line, message) => {
    const { session, printed } = terminal({ lists: [[]] });
    Object.assign(session.sluice, { testWebhook: async () => ({ data }) });
    await expect(test(session, 'inbox')).rejects.toMatchObject({ message, code: 1 });
    expect(printed).toEqual([line]);
  });

  it('prints the attempt as JSON with -o json', async () => {
    const { session, items } = terminal({ lists: [[]], format: 'json' });
    Object.assign(session.sluice, { testWebhook: async () => ({ data: attempt(1, 204) }) });
    await test(session, 'inbox');
    expect(items).toEqual([attempt(1, 204)]);
  });
});

describe('recover', () => {
  const [newer, older] = [delivery('del_7', 'pending', [], 1_769_861_100), delivery('del_6', 'pending', [], 1_769_861_400)];
  const done = delivery('del_8', 'succeeded', []);
  const shown = async (lists: object[][], options: object = {}) => {
    const { session, printed, notes } = terminal({ lists, ...options });
    await recover(session, 'inbox', { since: '0' });
    return [...printed, ...notes].join('');
  };

  it('shows how many were given up and how many wait, since when, and what happens next', async () => {
    expect(await shown([[done]])).toBe('no delivery was given up since 0\nno delivery to inbox is pending');
    expect(await shown([[done, newer, older]])).toBe(
      'no delivery was given up since 0\n2 deliveries were pending before, the oldest since 2026-01-31T12:00:00Z, next attempt 2026-01-31T12:05:00Z\n' +
        'Sluice retries each on its schedule; sluice retry inbox del_6 attempts the oldest one now. ' +
        'If at least five events in a row had failed and this attempt succeeds, Sluice delivers the others at once, too',
    );
    expect(await shown([[done, older]])).toMatch(/\nSluice retries it on its schedule; sluice retry inbox del_6 attempts it now$/);
    expect(await shown([[done]], { count: 1 })).toBe(
      '1 delivery given up since 0: due now\nSluice attempts them now, in order; sluice deliveries inbox shows them',
    );
    const many = Array.from({ length: 5001 }, (_, n) => delivery(`del_${9000 - n}`, 'failed', []));
    expect(await shown([many])).toBe('no delivery was given up since 0\nnone of the last 5000 deliveries waits');
    expect(await shown([[newer]], { active: false })).toBe(
      'no delivery was given up since 0\n1 delivery was pending before, the oldest since 2026-01-31T12:00:00Z\n' +
        'inbox is off: sluice on inbox lets its deliveries continue',
    );
    expect(await shown([[newer]], { count: 3, active: false })).toBe(
      '3 deliveries given up since 0: due now\n1 delivery was pending before, the oldest since 2026-01-31T12:00:00Z\n' +
        'inbox is off: sluice on inbox lets its deliveries continue',
    );
  });

  it.each([
    ['since', 'a bad time is wrong usage', { code: 2, message: '--since must be ISO 8601' }],
    ['other', 'another 400 is not', { status: 400 }],
  ])('a 400 about %s: %s', async (parameter, _, expected) => {
    const { session } = terminal({ lists: [[]] });
    Object.assign(session.sluice, {
      recoverDeliveries: () => Promise.reject(new SluiceError(400, { detail: `${parameter} must be ISO 8601` })),
    });
    await expect(recover(session, 'inbox', { since: 'yesterday' })).rejects.toMatchObject(expected);
  });

  it('has the same for programs', async () => {
    const { session, items } = terminal({ lists: [[newer, older]], count: 3, format: 'json' });
    await recover(session, 'inbox', { since: '0' });
    expect(items).toEqual([{ count: 3, pending: 2, pending_since: 1_769_860_800, next_attempt_at: 1_769_861_100 }]);
  });
});
