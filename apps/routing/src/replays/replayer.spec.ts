import { afterEach, expect, it } from '@jest/globals';
import { NotFound, SluiceError } from '#contracts';
import { createLog } from '#observability';
import { Replayer } from './replayer.js';
import type { ReplayRow } from './replays.repository.js';

type Saved = Pick<ReplayRow, 'status' | 'delivered' | 'failed'> & { restMs?: number };

const EVENT = { place: { ms: 1, seq: 4096 }, emitterId: 'dc_1', stream: '', emitId: 'e', json: Buffer.from('1') };

const ATTEMPT = { ts: 1, status_code: 200, duration_ms: 2, error: null, response_body: null };

let replayer: Replayer | undefined;
// it stops within a second
afterEach(() => void replayer?.beforeApplicationShutdown());

/** Lets one replay to a webhook have its turn until it ends. Returns what was stored last, and the steps of the turn. */
async function turnOf({
  events = 1,
  parked = [],
  cancelled_at = null,
  cancelled = false,
  read = async () => ({ events: [EVENT], offsets: {}, last: true }),
  kept = async (events) => events,
  waiting = () => 0,
  isFull = () => false,
  hasDue = () => false,
}: {
  /** How many were counted when it was created. */
  events?: number;
  parked?: string[];
  cancelled_at?: Date | null;
  /** Its owner cancels it while the log is read. */
  cancelled?: boolean;
  read?: () => Promise<object>;
  /** Those of a batch that were not deleted since they were read. */
  kept?: (events: object[]) => Promise<object[]>;
  /** How many parked deliveries wait for their first attempt. */
  waiting?: () => number;
  isFull?: () => boolean;
  hasDue?: () => boolean;
} = {}): Promise<{ saved: Saved; steps: string[] }> {
  const row = { id: 'rpl_1', owner_id: 'u_1', status: 'running', listener_id: 'wh_1', emitter_id: 'dc_1', offsets: {} };
  const claimable = [{ ...row, events, parked, cancelled_at, delivered: 0, failed: 0 }];
  const ended = Promise.withResolvers<Saved>();
  const steps: string[] = [];
  const replays = {
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
  };
  const log = {
    next: () => {
      steps.push('read');
      return read();
    },
    withoutDeleted: (_: unknown, events: object[]) => kept(events),
  };
  const store = {
    parkAgain: async (_: unknown, __: unknown, { attempts, fresh }: { attempts: unknown[]; fresh: boolean }) => {
      expect({ attempts, fresh }).toEqual({ attempts: [ATTEMPT], fresh: true });
      return steps.push('parked');
    },
  };
  const delivered = { findAll: async () => [{ attempts: [ATTEMPT] }], flush: async () => {} };
  const history = [delivered, delivered] as [never, never];
  replayer = new Replayer(
    ...([replays, log, store] as [never, never, never]),
    ...history,
    ...([{}, { isFull }] as [never, never]),
    createLog('test', 'silent'),
  );
  replayer.onApplicationBootstrap();
  return { saved: await ended.promise, steps };
}

it('delivers, counts the outcome and is done', async () => {
  const { saved, steps } = await turnOf();
  expect(steps).toEqual(['read', 'parked', 'looked']);
  expect(saved).toEqual({ status: 'done', delivered: 1, failed: 0, restMs: 0 });
});

it.each([
  ['its emitter was deleted', new NotFound('source', 'dc_1')],
  ['too many deletions concern its events', new SluiceError('unprocessable', 'too many')],
])('a replay is cancelled if %s', async (_, error) => {
  const { saved } = await turnOf({ read: () => Promise.reject(error) });
  expect(saved).toMatchObject({ status: 'cancelled', restMs: 0 });
});

it('does not deliver an event that was deleted since the log was read', async () => {
  const { saved, steps } = await turnOf({ kept: async () => [] });
  expect(steps).toEqual(['read']);
  expect(saved).toMatchObject({ status: 'done', delivered: 0, failed: 1 });
});

it('counts the events that the log does not have any more as failed', async () => {
  expect((await turnOf({ events: 1000 })).saved).toMatchObject({ status: 'done', delivered: 1, failed: 999 });
  const nothing = async () => ({ events: [], offsets: {}, last: true });
  expect((await turnOf({ events: 1000, read: nothing })).saved).toMatchObject({ status: 'done', delivered: 0, failed: 1000 });
});

it('a replay is cancelled if its emitter is deleted after the log was read', async () => {
  const { saved, steps } = await turnOf({ kept: () => Promise.reject(new NotFound('source', 'dc_1')) });
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
  expect(steps).toEqual(['read', 'parked', ...Array(6).fill('looked')]);
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
