import { describe, expect, it } from '@jest/globals';
import { subscribe } from './subscribe.js';
import type { Session } from '../session/session.js';
import { replay } from '../streams/deliveries.js';
import { listen } from '../streams/listen.js';
import { errors, events } from '../streams/read-events.js';

/** A session whose source `desk` and workflow `p_1` have events on these streams only. */
function sessionWith(streams: string[]) {
  const notes: string[] = [];
  const printed: string[] = [];
  const listStreams = async () => ({ data: streams.map((event_name) => ({ event_name, count: 1, last_event_at: 1 })) });
  const session = {
    ...{ format: 'json', env: {}, print: (text: string) => printed.push(text), item: (item: object) => printed.push(JSON.stringify(item)) },
    ...{ note: (text: string) => notes.push(text), progress: () => {}, endWithReader: () => {} },
    sluice: {
      each: async function* (page: (query: object) => Promise<{ data: object[] }>) {
        yield* (await page({})).data;
      },
      events: async function* () {},
      listSources: async () => ({ data: [{ id: 'dc_1', name: 'desk', name_slug: 'desk' }] }),
      listWebhooks: async () => ({ data: [{ id: 'wh_1', name: 'books' }] }),
      listSourceEvents: async () => JSON.stringify({ data: [] }),
      listWorkflowEvents: async () => JSON.stringify({ data: [] }),
      ...{ listSourceStreams: listStreams, listWorkflowStreams: listStreams },
      createSubscription: async () => ({ data: [{}] }),
      createReplay: async ({ body }: { body: { dry_run?: boolean } }) => ({
        data: { ...(body.dry_run ? {} : { id: 'rpl_1' }), events: 0 },
      }),
      getReplay: async () => ({ data: { id: 'rpl_1', status: 'done', events: 0, delivered: 0, failed: 0 } }),
    },
  };
  return { session: session as unknown as Session, notes, printed };
}

const HINT = "; there are events on placed, totals: --stream placed chooses one, --stream '*' all";

describe('a remark about a stream without events', () => {
  it.each<[string, string, string | undefined, string]>([
    ['of a source', 'desk', undefined, `no events on the default stream yet${HINT}`],
    ['of a workflow', 'p_1', undefined, `no events on the default stream yet${HINT}`],
    ['that is misspelt', 'desk', 'plced', `no events on the stream plced yet${HINT}`],
  ])('names the streams that have some: one %s', async (_, emitter, stream, note) => {
    const { session, notes, printed } = sessionWith(['$errors', 'placed', 'totals']);
    await events(session, emitter, { stream });
    expect([notes, printed]).toEqual([[note], ['[]\n']]);
  });

  it('names the default stream if only that one has events', async () => {
    const { session, notes } = sessionWith(['']);
    await events(session, 'desk', { stream: 'placed' });
    expect(notes).toEqual([
      "no events on the stream placed yet; there are events on default: --stream default chooses one, --stream '*' all",
    ]);
  });

  it('gives no hint for errors, which have a command', async () => {
    const { session, notes } = sessionWith(['placed']);
    await errors(session, 'desk', {});
    expect(notes).toEqual(['no errors yet']);
  });

  it('appears when the streams cannot be listed', async () => {
    const { session, notes } = sessionWith([]);
    Object.assign(session.sluice, { listSourceStreams: () => Promise.reject(new Error('503')) });
    await events(session, 'desk', {});
    expect(notes).toEqual(['no events yet']);
  });

  it.each([
    [undefined, `no events on the default stream in this range${HINT}`],
    ['plced', `no events on the stream plced in this range${HINT}`],
    ['*', 'no events on any stream in this range'],
  ])('appears before a replay of no events, of the stream %s, and its count', async (stream, note) => {
    const { session, notes, printed } = sessionWith(['placed', 'totals']);
    await replay(session, 'desk', 'books', { from: '0', wait: true, stream });
    await replay(session, 'desk', 'books', { from: '0', wait: true, stream, dryRun: true });
    expect(notes).toEqual([note, 'replay rpl_1: 0 events', note]);
    expect(printed.map((text) => JSON.parse(text) as object)).toEqual([
      { id: 'rpl_1', status: 'done', events: 0, delivered: 0, failed: 0 },
      { events: 0 },
    ]);
  });

  it.each([
    [undefined, ['placed', 'totals'], [`no events on the default stream yet${HINT}`]],
    ['placed', ['placed', 'totals'], []],
    ['*', ['placed', 'totals'], []],
    ['$errors', ['placed', 'totals'], []],
    [undefined, ['', 'placed'], []],
    [undefined, [], []],
  ])('appears for subscribe and listen only if others have some: the stream %s of %j', async (stream, streams, expected) => {
    const listening = sessionWith(streams);
    await expect(listen(listening.session, undefined, { source: ['desk'], stream })).rejects.toThrow('nothing is left');
    expect(listening.notes).toEqual(expected);
    const subscribing = sessionWith(streams);
    await subscribe(subscribing.session, 'desk', 'books', { stream });
    expect(subscribing.notes.slice(1)).toEqual(expected);
  });
});
