import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type FindRunOutcomes, NotFound, type RunOutcomes, type RunRequest, SluiceError } from '#contracts';
import type { EmittedEvent } from '#events';
import type { OutgoingRecord } from '#messaging';
import { createLog } from '#observability';
import { Replayer, replayRunId } from './replayer.js';
import type { ReplayRow } from './replays.repository.js';

type Saved = Pick<ReplayRow, 'status' | 'delivered' | 'failed'> & { restMs?: number };

const EVENT: EmittedEvent = {
  ...{ kind: 'event', place: { ms: 1, seq: 4096 }, emitterId: 'dc_1', stream: '', emitId: 'e' },
  ...{ json: Buffer.from('1'), hops: 0 },
};
const eventsOf = (count: number): EmittedEvent[] =>
  Array.from({ length: count }, (_, n) => ({ ...EVENT, place: { ms: 1, seq: 4096 * (n + 1) }, emitId: `e${n}` }));
const reading = (events: object[]) => async () => ({ events, offsets: {}, last: true });

const ATTEMPT = { ts: 1, status_code: 200, duration_ms: 2, error: null, response_body: null };

let replayer: Replayer | undefined;
// it stops within a second
afterEach(() => void replayer?.beforeApplicationShutdown());

// the size of a batch depends on how long the last one took
beforeEach(() => void jest.spyOn(performance, 'now').mockReturnValue(0));
afterEach(() => void jest.restoreAllMocks());

/** Lets one replay have its turn until it ends. Returns what was stored last, and the steps of the turn. */
async function turnOf({
  listener_id = 'wh_1',
  events = 1,
  parked = [],
  cancelled_at = null,
  cancelled = false,
  parked_at = null,
  read = reading([EVENT]),
  deleted = async () => [],
  waiting = () => 0,
  isFull = () => false,
  hasDue = () => false,
  runs = async ({ run_ids }) => ({ succeeded: run_ids, failed: [], queued: [], others_wait: false }),
  refuses = () => false,
}: {
  listener_id?: string;
  /** How many were counted when it was created. */
  events?: number;
  parked?: string[];
  parked_at?: Date | null;
  cancelled_at?: Date | null;
  /** Its owner cancels it while the log is read. */
  cancelled?: boolean;
  read?: () => Promise<object>;
  /** The events that were deleted since they were read. */
  deleted?: () => Promise<object[]>;
  /** How many parked deliveries wait for their first attempt. */
  waiting?: () => number;
  isFull?: () => boolean;
  hasDue?: () => boolean;
  /** The runtime's reply. */
  runs?: (query: FindRunOutcomes) => Promise<RunOutcomes>;
  /** Whether Kafka refuses a record. */
  refuses?: (record: OutgoingRecord) => boolean;
} = {}): Promise<{ saved: Saved; steps: string[]; sent: OutgoingRecord[]; sweeps: number }> {
  const row = { id: 'rpl_1', owner_id: 'u_1', status: 'running', listener_id, emitter_id: 'dc_1', offsets: {} };
  const claimable = [{ ...row, events, parked, parked_at, cancelled_at, delivered: 0, failed: 0 }];
  const ended = Promise.withResolvers<Saved>();
  const steps: string[] = [];
  let sweeps = 0;
  const replays = {
    deleteOld: async () => void (sweeps += 1),
    claim: async () => claimable.pop(),
    save: async (row: ReplayRow, { restMs }: { restMs?: number } = {}) => {
      const { status, delivered, failed } = row;
      if (cancelled) row.cancelled_at = new Date();
      if (restMs !== undefined) ended.resolve({ status, delivered, failed, restMs });
      return true;
    },
    outcomes: async (row: ReplayRow) => {
      if (row.parked.length === 0) return { waiting: 0, delivered: 0, failed: 0 };
      steps.push('looked');
      const still = waiting();
      return { waiting: still, delivered: row.parked.length - still, failed: 0 };
    },
    hasDue: async () => hasDue(),
    anyWaits: async () => true,
  };
  const log = {
    next: () => {
      steps.push('read');
      return read();
    },
    deletionsOf: () => {
      let gone: object[] = [];
      return { refresh: async () => void (gone = await deleted()), include: (event: object) => gone.includes(event) };
    },
  };
  const store = {
    parkAgain: async (_: unknown, __: unknown, deliveries: { attempts: unknown[] }[], { fresh }: { fresh: boolean }) => {
      expect({ attempts: deliveries[0]?.attempts, fresh }).toEqual({ attempts: [ATTEMPT], fresh: true });
      steps.push(deliveries.length === 1 ? 'parked' : `parked ${deliveries.length}`);
      return deliveries;
    },
  };
  const messages = {
    request: async (_: unknown, query: FindRunOutcomes) => {
      if (query.run_ids.length > 0) steps.push('looked');
      return runs(query);
    },
  };
  const sent: OutgoingRecord[] = [];
  const publisher = {
    send: async (records: OutgoingRecord[]) => {
      if (records.some(refuses)) throw Object.assign(new Error('too large'), { name: 'KafkaJSProtocolError', type: 'MESSAGE_TOO_LARGE' });
      steps.push(`sent ${records.length}`);
      sent.push(...records);
    },
  };
  const findAll = async (_: unknown, __: unknown, places: unknown[]) => places.map(() => ({ attempts: [ATTEMPT] }));
  const delivered = { findAll, flush: async () => {} };
  const history = [delivered, delivered] as [never, never];
  replayer = new Replayer(
    ...([replays, log, store] as [never, never, never]),
    ...history,
    ...([messages, publisher, { isFull }] as [never, never, never]),
    createLog('test', 'silent'),
  );
  replayer.onApplicationBootstrap();
  return { saved: await ended.promise, steps, sent, sweeps };
}

it('delivers, counts the outcome and is done', async () => {
  const { saved, steps } = await turnOf();
  expect(steps).toEqual(['read', 'parked', 'looked']);
  expect(saved).toEqual({ status: 'done', delivered: 1, failed: 0, restMs: 0 });
});

it('deletes old replays soon after the start, because the process may end within an hour', async () => {
  expect((await turnOf()).sweeps).toBe(1);
});

it.each([
  ['its emitter was deleted', new NotFound('source', 'dc_1')],
  ['too many deletions concern its events', new SluiceError('unprocessable', 'too many')],
])('a replay is cancelled if %s', async (_, error) => {
  const { saved } = await turnOf({ read: () => Promise.reject(error) });
  expect(saved).toMatchObject({ status: 'cancelled', restMs: 0 });
});

it('does not deliver an event that was deleted since the log was read', async () => {
  const { saved, steps } = await turnOf({ deleted: async () => [EVENT] });
  expect(steps).toEqual(['read']);
  expect(saved).toMatchObject({ status: 'done', delivered: 0, failed: 1 });
});

it('counts the events that the log does not have any more as failed', async () => {
  expect((await turnOf({ events: 1000 })).saved).toMatchObject({ status: 'done', delivered: 1, failed: 999 });
  expect((await turnOf({ events: 1000, read: reading([]) })).saved).toMatchObject({ status: 'done', delivered: 0, failed: 1000 });
});

it('a replay is cancelled if its emitter is deleted after the log was read', async () => {
  const { saved, steps } = await turnOf({ deleted: () => Promise.reject(new NotFound('source', 'dc_1')) });
  expect(steps).toEqual(['read']);
  expect(saved).toMatchObject({ status: 'cancelled', restMs: 0 });
});

it('a replay that is cancelled while the log is read delivers nothing', async () => {
  const { saved, steps } = await turnOf({ cancelled: true });
  expect(steps).toEqual(['read']);
  expect(saved).toEqual({ status: 'cancelled', delivered: 0, failed: 0, restMs: 0 });
});

it('a cancelled replay delivers nothing more, and counts what is parked', async () => {
  const { saved, steps } = await turnOf({ parked: ['1-4096', '1-4097'], cancelled_at: new Date() });
  expect(steps).toEqual(['looked']);
  expect(saved).toEqual({ status: 'cancelled', delivered: 2, failed: 0, restMs: 0 });
});

it('a replay that was cancelled a minute ago ends without the deliveries that still wait', async () => {
  const { saved } = await turnOf({ parked: ['1-4096', '1-4097'], cancelled_at: new Date(Date.now() - 61_000), waiting: () => 1 });
  expect(saved).toEqual({ status: 'cancelled', delivered: 1, failed: 0, restMs: 0 });
});

it.each<[string, Parameters<typeof turnOf>[0], string[]]>([
  ['its deliveries wait for their first attempts', { parked: ['1-4096'], waiting: () => 1 }, ['looked']],
  ['it was cancelled and its deliveries wait', { parked: ['1-4096'], cancelled_at: new Date(), waiting: () => 1 }, ['looked']],
  ['its account is full', { isFull: () => true }, []],
  ['live deliveries to its webhook are due', { hasDue: () => true }, []],
])('ends its turn at once if %s, without reading the log', async (_, state, expected) => {
  const { saved, steps } = await turnOf(state);
  expect(steps).toEqual(expected);
  expect(saved).toMatchObject({ status: 'running', restMs: 2000 });
});

it('ends its turn when its receiver has not responded for a second', async () => {
  const { saved, steps } = await turnOf({ waiting: () => 20 });
  expect(steps).toEqual(['read', 'parked', ...Array(11).fill('looked')]);
  expect(saved).toMatchObject({ status: 'running', restMs: 2000 });
});

it('continues its turn while its receiver responds', async () => {
  let looks = 0;
  const { saved } = await turnOf({ waiting: () => (++looks % 3 === 0 ? 0 : 1) });
  expect(saved).toMatchObject({ status: 'done', delivered: 1 });
});

it('parks nothing once the account is full', async () => {
  let asked = 0;
  const { saved, steps } = await turnOf({ isFull: () => asked++ > 0 });
  expect(steps).toEqual(['read']);
  expect(saved).toMatchObject({ status: 'running', restMs: 2000 });
});

it('parks larger batches for a receiver that keeps up', async () => {
  const { saved, steps } = await turnOf({ events: 500, read: reading(eventsOf(500)) });
  expect(steps.filter((step) => step !== 'looked')).toEqual(['read', 'parked 20', 'parked 40', 'parked 80', 'parked 160', 'parked 200']);
  expect(saved).toMatchObject({ status: 'done', delivered: 500 });
});

it('parks smaller batches of large events', async () => {
  const large = eventsOf(3).map((event) => ({ ...event, json: Buffer.alloc(600_000, '1') }));
  const { steps } = await turnOf({ events: 3, read: reading(large) });
  expect(steps.filter((step) => step !== 'looked')).toEqual(['read', 'parked 2', 'parked']);
});

describe('a replay to a source', () => {
  const toSource = (options: Parameters<typeof turnOf>[0]) => turnOf({ listener_id: 'dc_2', ...options });
  const nothingOf = { succeeded: [], failed: [], queued: [], others_wait: false };

  it('hands a batch over when the runs of the last one have ended, beginning with one run', async () => {
    const { saved, steps } = await toSource({ events: 50, read: reading(eventsOf(50)) });
    const batches = [1, 2, 4, 8, 16, 19].flatMap((size) => [`sent ${size}`, 'looked']);
    expect(steps).toEqual(['read', ...batches]);
    expect(saved).toEqual({ status: 'done', delivered: 50, failed: 0, restMs: 0 });
  });

  it('never has more than one run waiting that takes long, and ends its turn', async () => {
    const { saved, steps, sent } = await toSource({ events: 50, read: reading(eventsOf(50)), runs: async () => nothingOf });
    expect(steps).toEqual(['read', 'sent 1', ...Array(11).fill('looked')]);
    expect(sent).toHaveLength(1);
    expect(saved).toMatchObject({ status: 'running', delivered: 0, restMs: 2000 });
  });

  it('waits while other runs of the source wait, without reading the log', async () => {
    const { saved, steps } = await toSource({ runs: async () => ({ ...nothingOf, others_wait: true }) });
    expect(steps).toEqual([]);
    expect(saved).toMatchObject({ status: 'running', restMs: 2000 });
  });

  it('counts the runs that failed as failed events', async () => {
    const runs = async ({ run_ids }: FindRunOutcomes) => ({ ...nothingOf, failed: run_ids });
    expect((await toSource({ runs })).saved).toEqual({ status: 'done', delivered: 0, failed: 1, restMs: 0 });
  });

  it('counts a run that was dropped or lost as failed after an hour, but not one that waits', async () => {
    const lostAt = (minutes: number, queued: string[]) => {
      const runs = async ({ run_ids }: FindRunOutcomes) => ({ ...nothingOf, succeeded: run_ids.filter((id) => id !== 'r1'), queued });
      return toSource({ events: 2, parked: ['r1'], parked_at: new Date(Date.now() - minutes * 60_000), runs });
    };
    expect((await lostAt(59, [])).saved).toMatchObject({ status: 'running', failed: 0 });
    expect((await lostAt(61, ['r1'])).saved).toMatchObject({ status: 'running', failed: 0 });
    expect((await lostAt(61, [])).saved).toMatchObject({ status: 'done', delivered: 1, failed: 1 });
  });

  it('runs the source once for several copies of an emit, each of which is counted', async () => {
    const copies = eventsOf(3).map((event) => ({ ...event, emitId: 'order-7' }));
    const { saved, sent } = await toSource({ events: 3, read: reading(copies) });
    const ids = sent.map(({ value }) => (JSON.parse(String(value)) as RunRequest).run_id);
    expect(ids).toEqual(Array(3).fill(replayRunId('rpl_1', copies[0]!, 'dc_2')));
    expect(saved).toMatchObject({ status: 'done', delivered: 3, failed: 0 });
  });

  it('does not wait for a run whose record Kafka refuses', async () => {
    const refuses = ({ topic, value }: OutgoingRecord) => topic === 'runtime.run.execute' && String(value).includes('"1"');
    expect((await toSource({ refuses })).saved).toEqual({ status: 'done', delivered: 0, failed: 1, restMs: 0 });
  });

  it.each([
    ['counts its batch and ends when it is cancelled', 0, 'cancelled'],
    ['waits for its batch when it is cancelled', 1, 'running'],
  ])('%s', async (_, waiting, status) => {
    const runs = async ({ run_ids }: FindRunOutcomes) => ({ ...nothingOf, succeeded: run_ids.slice(waiting) });
    const { saved, sent } = await toSource({ parked: ['r1', 'r2'], parked_at: new Date(), cancelled_at: new Date(), runs });
    expect([saved.status, sent]).toEqual([status, []]);
  });
});

it('hands the events for a workflow over in batches of ten', async () => {
  const { saved, steps } = await turnOf({ listener_id: 'p_1', events: 25, read: reading(eventsOf(25)) });
  expect(steps).toEqual(['read', 'sent 10', 'sent 10', 'sent 5']);
  expect(saved).toMatchObject({ status: 'done', delivered: 25 });
});
