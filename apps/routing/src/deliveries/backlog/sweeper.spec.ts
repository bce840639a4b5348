import { describe, expect, it } from '@jest/globals';
import { createLog, metrics } from '#observability';
import type { DatabaseRestores } from '#service';
import { RoutingConfig } from '../../routing.config.js';
import { MAX_REQUESTED_PROBE_MS, scheduleLength } from '../attempt/retry-schedule.js';
import type { Attempt, Delivery } from '../delivery.js';
import type { Notices } from '../notices.js';
import type { Targets } from '../receivers/targets.js';
import type { BacklogsRepository } from '../store/backlogs.repository.js';
import type { ExpiredDelivery, Expiry, ParkedDeliveriesRepository } from '../store/parked-deliveries.repository.js';
import { Sweeper } from './sweeper.js';

const config = RoutingConfig.read({});
const example = (webhookId: string, statuses: number[] = []) =>
  ({ webhookId, attempts: statuses.map((status_code) => ({ status_code })) }) as ExpiredDelivery;

/** A sweeper, with the batches of deliveries that have waited too long, the sizes of those that were given up long ago, and how long Sluice was down. */
function sweeping(
  expired: ExpiredDelivery[][],
  old: number[],
  onBatch = () => {},
  unusedMs = 0,
  deletedWebhooks: boolean[] = [],
  of = config,
  distant = (_: number) => 0,
) {
  const [expiries, keptMs, reported]: [Expiry[], number[], string[]] = [[], [], []];
  const parked = {
    correctDeliveries: async (ms: number) => distant(ms),
    deleteOfDeletedWebhooks: async () => {
      const left = deletedWebhooks.shift() ?? false;
      if (left) reported.push('deleted');
      return left;
    },
    findExpired: async (expiry: Expiry) => {
      expiries.push(expiry);
      onBatch();
      return expired[0] ?? [];
    },
    giveUpExpired: async (expiry: Expiry, ids: string[]) => {
      expect(expiry).toBe(expiries.at(-1));
      expect(ids).toEqual((expired.shift() ?? []).map(({ webhookId }) => webhookId));
      reported.push(`${ids.length} given up`);
      return { count: ids.length, more: expired.length > 0 };
    },
    deleteGivenUp: async (ms: number) => {
      keptMs.push(ms);
      onBatch();
      return old.shift() ?? 0;
    },
  } as unknown as ParkedDeliveriesRepository;
  const targets = { get: async (id: string) => (id === 'wh_deleted' ? undefined : { id }) } as unknown as Targets;
  const expire = async (_: object, { webhookId }: Delivery, last?: Attempt) =>
    void reported.push(last ? `${webhookId} ${last.status_code}` : webhookId);
  const notices = { expired: expire } as unknown as Notices;
  const restores = { unusedMs: async () => unusedMs } as unknown as DatabaseRestores;
  const backlogs = { correctProbes: async (ms: number) => distant(ms) } as unknown as BacklogsRepository;
  const sweeper = new Sweeper(createLog('sweeper', 'silent'), of, restores, parked, backlogs, targets, notices);
  return { sweeper, expiries, keptMs, reported };
}

it('the first sweep is overdue some time after the start, not at once', async () => {
  const [sweptAt] = (await metrics.getSingleMetric('sluice_deliveries_swept_timestamp_seconds')!.get()).values;
  expect(sweptAt!.value).toBeGreaterThan(performance.timeOrigin / 1000);
});

describe('a sweep', () => {
  it('reports one delivery of each webhook that exists, gives them up in batches, and deletes old ones in batches', async () => {
    const { sweeper, expiries, keptMs, reported } = sweeping(
      [[example('wh_1', [500, 503]), example('wh_deleted'), { ...example('wh_suspended'), wasSuspended: true }], [example('wh_2')]],
      [5000, 12],
    );
    await sweeper.sweep();
    expect(reported).toEqual(['wh_1 503', '3 given up', 'wh_2', '1 given up']);
    expect(expiries).toHaveLength(2);
    // the jitter of the schedule, and the time until a delivery is swept
    expect(expiries[0]!.parkedForMs).toBe(scheduleLength(config.retrySchedule) * 1.25 + 60_000);
    expect(keptMs).toEqual([config.failedKeptMs, config.failedKeptMs, config.failedKeptMs]);
  });

  it('deletes the deliveries of deleted webhooks in batches', async () => {
    const { sweeper, reported } = sweeping([[example('wh_1')]], [], undefined, 0, [true, true, false]);
    await sweeper.sweep();
    expect(reported).toEqual(['deleted', 'deleted', 'wh_1', '1 given up']);
  });

  it('does not count the time for which Sluice was down', async () => {
    const [{ sweeper, expiries }, other] = [sweeping([], [], undefined, 5000), sweeping([], [])];
    await sweeper.sweep();
    await other.sweeper.sweep();
    const [{ parkedForMs, dueForMs }] = other.expiries as [Expiry];
    expect(expiries).toEqual([{ parkedForMs: parkedForMs + 5000, dueForMs: dueForMs + 5000 }]);
  });

  it('lets a delivery wait until its receiver is probed, also if that requests a longer pause than the schedule has', async () => {
    const { sweeper, expiries } = sweeping(
      [],
      [],
      undefined,
      0,
      [],
      Object.assign(RoutingConfig.read({}), { retrySchedule: [1000, 5000] }),
    );
    await sweeper.sweep();
    expect(expiries[0]!.parkedForMs).toBeLessThan(MAX_REQUESTED_PROBE_MS);
    expect(expiries[0]!.dueForMs).toBeGreaterThan(MAX_REQUESTED_PROBE_MS);
  });

  it('makes attempts due that are further away than any can be, in batches', async () => {
    const [found, longest]: [number[], number[]] = [[1, 5000, 12, 0], []];
    const { sweeper } = sweeping([], [], undefined, 0, [], config, (ms) => {
      longest.push(ms);
      return found.shift() ?? 0;
    });
    await sweeper.sweep();
    // an hour for a probe, and a day with its jitter for a retry
    expect(longest.map((ms) => ms / 3_600_000)).toEqual([expect.closeTo(1.08), 30, 30, 30]);
  });

  it('is in progress once, however long it takes', async () => {
    const { sweeper, expiries } = sweeping([], []);
    await Promise.all([sweeper.sweep(), sweeper.sweep()]);
    expect(expiries).toHaveLength(1);
    await sweeper.sweep();
    expect(expiries).toHaveLength(2);
  });

  it('has ended when the service has stopped', async () => {
    const { sweeper } = sweeping([[example('wh_1')]], []);
    let hasEnded = false;
    void sweeper.sweep().then(() => (hasEnded = true));
    await sweeper.onApplicationShutdown();
    expect(hasEnded).toBe(true);
  });

  it.each([
    ['gives up', [[example('wh_1')], [example('wh_2')]], [], [1, 0]],
    ['deletes', [], [5000, 5000], [1, 1]],
  ] as [string, ExpiredDelivery[][], number[], number[]][])(
    'ends after the batch that it %s when the service stops',
    async (_, expired, old, expected) => {
      let batches = 0;
      const stopAfter = expected[0]! + expected[1]!;
      const { sweeper, expiries, keptMs } = sweeping(expired, old, () => {
        batches += 1;
        if (batches === stopAfter) void sweeper.onApplicationShutdown();
      });
      await sweeper.sweep();
      expect([expiries.length, keptMs.length]).toEqual(expected);
    },
  );
});
