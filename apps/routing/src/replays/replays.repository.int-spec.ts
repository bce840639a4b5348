import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { type EmitterId, type ListenerId, newId, type UserId } from '#contracts';
import type { Database, Transaction } from '#database';
import { NextDeliveriesRepository } from '../deliveries/store/next-deliveries.repository.js';
import { ParkedDeliveriesRepository } from '../deliveries/store/parked-deliveries.repository.js';
import { RoutingFixture } from '../routing-fixture-for-tests.js';
import { cancelReplaysTo, LIVE_DUE, ReplayRow, ReplaysRepository } from './replays.repository.js';

let routing: RoutingFixture;
let replays: ReplaysRepository;
let parked: ParkedDeliveriesRepository;
let next: NextDeliveriesRepository;
beforeAll(async () => {
  routing = await RoutingFixture.open();
  replays = new ReplaysRepository(routing.database, routing.database.rows(ReplayRow));
  parked = new ParkedDeliveriesRepository(routing.database, routing.backlogs);
  next = new NextDeliveriesRepository(routing.database);
});
afterAll(() => routing?.close());

const add = async (owner: UserId, part: { emitter_id?: EmitterId; listener_id?: ListenerId; events?: number } = {}) => {
  const id = newId('replay');
  await replays.add({
    ...{ id, owner_id: owner, emitter_id: newId('source'), stream: '', listener_id: newId('webhook') },
    ...{ from_id: '0-0', to_id: '1-0', events: 1 },
    ...part,
  });
  return id;
};

it('a replay without events is done when it is added, and has no turn', async () => {
  const owner = newId('user');
  const id = await add(owner, { events: 0 });
  expect(await replays.progress(owner, id)).toMatchObject({ status: 'done', delivered: 0, failed: 0 });
  expect(await replays.claim()).toBeUndefined();
});

it('the replays of an account take turns, the one that waits longest first', async () => {
  const owner = newId('user');
  const ids = [await add(owner), await add(owner), await add(owner)];
  const turns: string[] = [];
  for (let n = 0; n < 6; n++) {
    const row = (await replays.claim())!;
    turns.push(row.id);
    await replays.save(row, { restMs: 0 });
  }
  expect(turns.slice(0, 3).sort()).toEqual(ids.sort());
  expect(turns.slice(3)).toEqual(turns.slice(0, 3));
});

it('a replay continues with what the turn before has stored', async () => {
  await routing.database.query('TRUNCATE replay');
  await add(newId('user'));
  const row = (await replays.claim())!;
  expect(row).toMatchObject({ offsets: {}, clocks: {} });
  const stored = { offsets: { 3: 17 }, clocks: { 3: 1_700_000_000_000 }, parked: ['r1'], parked_at: new Date() };
  await replays.save({ ...row, ...stored }, { restMs: 0 });
  expect(await replays.anyWaits()).toBe(true);
  expect(await replays.claim()).toMatchObject(stored);
  expect(await replays.anyWaits()).toBe(false);
});

/** The accounts of the next turns, each of which ends at once. */
const turns = async (count: number): Promise<UserId[]> => {
  const owners: UserId[] = [];
  for (let n = 0; n < count; n++) {
    const row = (await replays.claim())!;
    owners.push(row.owner_id);
    await replays.save(row, { restMs: 0 });
  }
  return owners;
};

it('accounts take turns, however many replays each has', async () => {
  await routing.database.query('TRUNCATE replay');
  const [busy, other] = [newId('user'), newId('user')];
  for (let n = 0; n < 20; n++) await add(busy);
  await turns(3);
  await add(other);
  expect(await turns(6)).toEqual([other, busy, other, busy, other, busy]);
});

it('an account does not get a turn earlier by cancelling a replay and creating another one', async () => {
  await routing.database.query('TRUNCATE replay');
  const [hasty, other] = [newId('user'), newId('user')];
  const id = await add(hasty);
  await add(other);
  expect((await turns(2)).sort()).toEqual([hasty, other].sort());
  await turns(1);
  const last = (await replays.claim())!;
  await replays.save(last, { restMs: 0 });
  await replays.cancel(hasty, id);
  await add(hasty);
  expect(await turns(2)).toEqual(last.owner_id === hasty ? [other, hasty] : [hasty, other]);
});

it('a replay gets no turn while it rests', async () => {
  await routing.database.query('TRUNCATE replay');
  await add(newId('user'));
  const row = (await replays.claim())!;
  expect(await replays.save(row, { restMs: 60_000 })).toBe(true);
  expect(await replays.claim()).toBeUndefined();
});

it('a replay gets its turn although its last one began while the clock of the database was an hour ahead', async () => {
  await routing.database.query('TRUNCATE replay');
  await add(newId('user'));
  const { id } = (await replays.claim())!;
  expect(await replays.claim()).toBeUndefined();
  await routing.database.query("UPDATE replay SET leased_until = leased_until + interval '1 hour'");
  expect(await replays.claim()).toMatchObject({ id });
});

it('keeps its progress when a replica that has lost the lease stores an older one', async () => {
  await routing.database.query('TRUNCATE replay');
  const owner = newId('user');
  const id = await add(owner);
  const frozen = (await replays.claim())!;
  expect(await replays.save(frozen)).toBe(true);
  await routing.database.query("UPDATE replay SET leased_until = now() - interval '1 s'");
  // leases that begin in the same millisecond are equal
  await sleep(2);
  const next = (await replays.claim())!;
  expect(await replays.save(Object.assign(next, { offsets: { 0: 5 } }))).toBe(true);
  expect(await replays.save(frozen)).toBe(false);
  expect(await replays.save(frozen, { restMs: 0 })).toBe(false);
  expect((await replays.find(owner, id))?.offsets).toEqual({ 0: 5 });
  expect(await replays.save(next, { restMs: 0 })).toBe(true);
});

it('counts the replays of an account that have not ended', async () => {
  const [owner, other] = [newId('user'), newId('user')];
  const id = await add(owner);
  await Promise.all([add(owner), add(other)]);
  expect(await replays.countRunning(owner)).toBe(2);
  await replays.cancel(owner, id);
  expect(await replays.countRunning(owner)).toBe(1);
});

it('a replay is cancelled from the beginning if its account was suspended while its events were counted', async () => {
  const [owner, other] = [newId('user'), newId('user')];
  await routing.webhooks.suspend(owner, true);
  const ids = [await add(owner), await add(other)] as const;
  expect([await replays.progress(owner, ids[0]), await replays.progress(other, ids[1])]).toMatchObject([
    { status: 'cancelled' },
    { status: 'running' },
  ]);
  await routing.webhooks.suspend(owner, false);
  expect(await replays.progress(owner, await add(owner))).toMatchObject({ status: 'running' });
});

it('counts what is parked, also of a cancelled replay, which then ends', async () => {
  await routing.database.query('TRUNCATE replay');
  const owner = newId('user');
  const webhook = await routing.webhook(owner);
  const id = await add(owner, { listener_id: webhook });
  const row = (await replays.claim())!;
  // one waits, one has failed, and one has been delivered
  expect(await replays.save(Object.assign(row, { delivered: 5, parked: ['1-1', '1-2', '1-3'] }))).toBe(true);
  await routing.database.query(
    `INSERT INTO parked_delivery (webhook_id, ms, seq, emitter_id, stream, emit_id, body, fresh, attempts, tries, due_at)
     SELECT $1, 1, seq, 'dc_1', '', 'e', '1', seq = 1, '[]', seq - 1, now() FROM generate_series(1, 2) AS seq`,
    [webhook],
  );
  const counted = { id, events: 1, delivered: 6, failed: 1 };
  expect(await replays.progress(owner, id)).toEqual({ ...counted, status: 'running' });
  await replays.cancel(owner, id);
  expect(await replays.progress(owner, id)).toEqual({ ...counted, status: 'cancelled' });
  expect(row.cancelled_at).toBeNull();
  expect(await replays.save(row)).toBe(true);
  expect(row.cancelled_at).toBeInstanceOf(Date);
  const { cancelled_at } = row;
  await replays.cancel(owner, id);
  expect(await replays.save(row, { restMs: 0 })).toBe(true);
  const again = (await replays.claim())!;
  expect(again).toEqual({ ...row, cancelled_at, leased_until: again.leased_until });
  expect(await replays.save(Object.assign(again, { status: 'done', parked: [] }), { restMs: 0 })).toBe(true);
  expect(await replays.progress(owner, id)).toMatchObject({ status: 'cancelled', delivered: 5 });
  expect(await replays.claim()).toBeUndefined();
});

it.each([
  ['waits for its third attempt', { tries: 2, pauseMs: 3_600_000 }],
  ['was given up', { tries: 10, pauseMs: null }],
])('a replayed delivery that %s begins a new retry schedule, and is counted after its next attempt', async (_, { tries, pauseMs }) => {
  const owner = newId('user');
  const webhook = await routing.webhook(owner);
  const delivery = {
    ...{ webhookId: webhook, place: { ms: 1, seq: 1 }, emitterId: newId('source'), stream: '', emitId: 'e', json: Buffer.from('1') },
  };
  const failed = { delivery, delivered: false as const, attempts: [], tries, pauseMs };
  await parked.parkFailed(routing.database, failed);
  const outcomes = () => replays.outcomes({ listener_id: webhook, parked: ['1-1'] });
  expect(await outcomes()).toEqual({ waiting: 0, failed: 1, delivered: 0 });
  await parked.parkAgain(owner, webhook, [{ delivery, attempts: [] }], { fresh: true });
  expect(await outcomes()).toEqual({ waiting: 1, failed: 0, delivered: 0 });
  expect((await next.take(webhook, 10)).parked).toMatchObject([{ tries: 0 }]);
  await routing.database.query("UPDATE backlog SET lease_id = 'own' WHERE webhook_id = $1", [webhook]);
  await parked.settle(routing.database, webhook, [{ ...failed, tries: 1, pauseMs: 5000 }], 'own');
  expect(await outcomes()).toEqual({ waiting: 0, failed: 1, delivered: 0 });
});

it.each(['first', 'second'])('a replay of a delivery during its %s attempt does not count the failure of that attempt', async (which) => {
  const owner = newId('user');
  const webhook = await routing.webhook(owner);
  const delivery = {
    ...{ webhookId: webhook, place: { ms: 1, seq: 1 }, emitterId: newId('source'), stream: '', emitId: 'e', json: Buffer.from('1') },
  };
  const failed = { delivery, delivered: false as const, attempts: [], tries: 2, pauseMs: 3_600_000 };
  const add = () => routing.database.transaction((transaction) => parked.addInFlight(transaction, delivery, 60_000));
  if (which === 'second') await parked.parkFailed(routing.database, { ...failed, tries: 1, pauseMs: 0 });
  const revision = which === 'first' ? await add() : (await next.take(webhook, 10)).parked[0]!.revision;
  await parked.parkAgain(owner, webhook, [{ delivery, attempts: [] }], { fresh: true });
  await routing.database.query("UPDATE backlog SET lease_id = 'own' WHERE webhook_id = $1", [webhook]);
  await parked.settle(routing.database, webhook, [{ ...failed, revision }], which === 'first' ? undefined : 'own');
  const outcomes = () => replays.outcomes({ listener_id: webhook, parked: ['1-1'] });
  expect(await outcomes()).toEqual({ waiting: 1, failed: 0, delivered: 0 });
  const [again] = (await next.take(webhook, 10)).parked;
  expect(again).toMatchObject({ tries: 0 });
  await parked.settle(routing.database, webhook, [{ ...failed, tries: 1, revision: again!.revision }], 'own');
  expect(await outcomes()).toEqual({ waiting: 0, failed: 1, delivered: 0 });
});

it('parks a batch with the attempts of each delivery, unless the webhook belongs to another account', async () => {
  const owner = newId('user');
  const webhook = await routing.webhook(owner);
  const attempts = [{ ts: 1, status_code: 200, duration_ms: 2, error: null, response_body: null }];
  const batch = [3, 1, 2].map((seq) => ({
    delivery: {
      ...{
        webhookId: webhook,
        place: { ms: 1, seq },
        emitterId: newId('source'),
        stream: 's',
        emitId: `e${seq}`,
        json: Buffer.from(`${seq}`),
      },
      ...(seq === 1 ? { time: '2026-01-31T12:00:00Z', context: { attributes: { source: 'x' } } } : {}),
    },
    attempts: seq === 2 ? attempts : [],
  }));
  expect(await parked.parkAgain(newId('user'), webhook, batch, { fresh: true })).toEqual([]);
  expect(await parked.parkAgain(owner, webhook, batch, { fresh: true })).toHaveLength(3);
  const inOrder = batch.toSorted((a, b) => a.delivery.place.seq - b.delivery.place.seq);
  expect((await next.take(webhook, 10)).parked).toMatchObject(inOrder.map((each) => ({ ...each, fresh: true, tries: 0, sinceFirstMs: 0 })));
});

it('a replay does not deliver an event that was deleted meanwhile', async () => {
  const owner = newId('user');
  const webhook = await routing.webhook(owner);
  const emitterId = newId('source');
  const delivery = { ...{ webhookId: webhook, place: { ms: 1, seq: 1 }, emitterId, stream: '', emitId: 'e', json: Buffer.from('1') } };
  await parked.parkFailed(routing.database, { delivery, delivered: false, attempts: [], tries: 2, pauseMs: 1000 });
  await parked.withdraw([{ kind: 'delete', place: { ms: 2, seq: 2 }, emitterId, start: null, end: null, stream: null }]);
  expect(await parked.parkAgain(owner, webhook, [{ delivery, attempts: [] }], { fresh: true })).toMatchObject([{ due_at: null }]);
  expect((await next.take(webhook, 10)).parked).toEqual([]);
  const { rows } = await routing.database.query('SELECT failed_at FROM parked_delivery WHERE webhook_id = $1', [webhook]);
  expect(rows).toEqual([{ failed_at: expect.any(Date) }]);
  expect(await replays.outcomes({ listener_id: webhook, parked: ['1-1'] })).toEqual({ waiting: 0, failed: 1, delivered: 0 });
});

it('a replay waits while a live delivery is due, which an index finds', async () => {
  const webhook = await routing.webhook(newId('user'));
  const park = (seq: number, { fresh, dueInMs }: { fresh: boolean; dueInMs: number | null }) =>
    routing.database.query(
      `INSERT INTO parked_delivery (webhook_id, ms, seq, emitter_id, stream, emit_id, body, fresh, attempts, tries, due_at)
       VALUES ($1, 1, $2, 'dc_1', '', 'e', '1', $3, '[]', 1, now() + $4 * interval '1 ms')`,
      [webhook, seq, fresh, dueInMs],
    );
  await park(1, { fresh: false, dueInMs: null });
  await park(2, { fresh: true, dueInMs: null });
  await park(3, { fresh: false, dueInMs: 60_000 });
  expect(await replays.hasDue(webhook)).toBe(false);
  await park(4, { fresh: false, dueInMs: 0 });
  expect(await replays.hasDue(webhook)).toBe(true);
  await routing.database.query('DELETE FROM parked_delivery WHERE webhook_id = $1', [webhook]);
  await park(5, { fresh: true, dueInMs: 0 });
  expect(await replays.hasDue(webhook)).toBe(true);
  const { rows } = await routing.database.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${LIVE_DUE.replaceAll('$1', "'wh_1'")}`);
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan.match(/using \w+/g)).toEqual(['using parked_delivery_fresh', 'using parked_delivery_due']);
});

it('a replay is cancelled when its emitter or its listener is deleted', async () => {
  const owner = newId('user');
  const [source, workflow] = [await routing.source(owner), await routing.workflow(owner)];
  const [listening, webhook] = [await routing.source(owner), await routing.webhook(owner)];
  const ids = [
    await add(owner, { emitter_id: source }),
    await add(owner, { emitter_id: workflow }),
    await add(owner, { listener_id: listening }),
    await add(owner, { listener_id: webhook }),
    await add(owner),
  ];
  for (const id of [source, workflow, listening]) await routing.directory.learn(routing.state(owner, id, { deleted: true, version: 2 }));
  await routing.webhooksService.delete({ owner_id: owner, id: webhook });
  const statuses = await Promise.all(ids.map(async (id) => (await replays.progress(owner, id))?.status));
  expect(statuses).toEqual(['cancelled', 'cancelled', 'cancelled', 'cancelled', 'running']);
});

it('a replay is cancelled when its listener is switched off, also while its events are counted', async () => {
  const owner = newId('user');
  const created_at_ms = Date.now();
  const [source, workflow] = [await routing.source(owner, { created_at_ms }), await routing.workflow(owner, { created_at_ms })];
  const webhook = await routing.webhook(owner);
  const others = [await add(owner, { emitter_id: source }), await add(owner)];
  const toEach = async () => [
    await add(owner, { listener_id: source }),
    await add(owner, { listener_id: workflow }),
    await add(owner, { listener_id: webhook }),
  ];
  const statuses = (ids: typeof others) => Promise.all(ids.map(async (id) => (await replays.progress(owner, id))?.status));
  const ids = await toEach();
  expect(await statuses(ids)).toEqual(['running', 'running', 'running']);
  await routing.webhooksService.update({ owner_id: owner, id: webhook, name: 'renamed', active: true });
  expect(await statuses(ids)).toEqual(['running', 'running', 'running']);
  for (const id of [source, workflow])
    await routing.directory.learn(routing.state(owner, id, { created_at_ms, active: false, version: 2 }));
  await routing.webhooksService.update({ owner_id: owner, id: webhook, active: false });
  expect(await statuses([...ids, ...(await toEach()), ...others])).toEqual([...Array(6).fill('cancelled'), 'running', 'running']);
});

it('a replay is cancelled when its webhook is disabled, and counts what is given up', async () => {
  const owner = newId('user');
  const [webhook, other] = [await routing.webhook(owner), await routing.webhook(owner)];
  const [id, running] = [await add(owner, { listener_id: webhook }), await add(owner, { listener_id: other })];
  const [target] = await routing.webhooks.findTargets([webhook]);
  expect(await routing.database.transaction((transaction) => routing.webhooks.disable(transaction, target!))).toBe(true);
  expect(await replays.find(owner, id)).toMatchObject({ status: 'running', cancelled_at: expect.any(Date) });
  expect((await replays.progress(owner, id))?.status).toBe('cancelled');
  expect((await replays.progress(owner, running))?.status).toBe('running');
});

it('replays are kept for 30 days after they have ended', async () => {
  const owner = newId('user');
  const age = async (status: ReplayRow['status'], created: string, lastTurn: string) => {
    const id = await add(owner);
    await routing.database.query('UPDATE replay SET status = $2, created_at = $3, leased_until = $4 WHERE id = $1', [
      id,
      status,
      ...[created, lastTurn].map((each) => (each === 'never' ? '-infinity' : new Date(Date.now() - Number(each) * 24 * 3_600_000))),
    ]);
    return id;
  };
  const kept = [await age('done', '40', '1'), await age('running', '40', '31'), await age('cancelled', '29', 'never')];
  const old = [await age('done', '40', '31'), await age('cancelled', '31', 'never')];
  await replays.deleteOld();
  const found = async (ids: typeof kept) => (await Promise.all(ids.map((id) => replays.find(owner, id)))).map((row) => row?.id);
  expect(await found(kept)).toEqual(kept);
  expect(await found(old)).toEqual(old.map(() => undefined));
});

describe('an account with many replays that have ended', () => {
  const owner = newId('user');
  const webhook = newId('webhook');
  beforeAll(async () => {
    await routing.database.query('TRUNCATE replay');
    await routing.database.query(
      `INSERT INTO replay (id, owner_id, emitter_id, stream, listener_id, from_id, to_id, events, status)
       SELECT 'rpl_' || n, CASE WHEN n <= 1000 THEN $1 ELSE 'u_' || n END, 'dc_1', '', $2, '0-0', '1-0', 1, CASE WHEN n <= 1100 AND n > 1 THEN 'done' ELSE 'running' END
       FROM generate_series(1, 1200) AS n`,
      [owner, webhook],
    );
    await routing.database.query("UPDATE replay SET created_at = now() - interval '31 days' WHERE id = 'rpl_2'");
    await routing.database.query('ANALYZE replay');
  });

  /** How many rows of the table this reads. */
  const rowsReadBy = (work: (replays: ReplaysRepository, transaction: Transaction) => Promise<unknown>) =>
    routing.database.transaction(async (transaction) => {
      const readSoFar = async () => {
        const { rows } = await transaction.query<{ read: number }>(
          "SELECT seq_tup_read + idx_tup_fetch AS read FROM pg_stat_xact_user_tables WHERE relname = 'replay'",
        );
        return rows[0]!.read;
      };
      const before = await readSoFar();
      await work(new ReplaysRepository(transaction as unknown as Database, transaction.rows(ReplayRow)), transaction);
      return (await readSoFar()) - before;
    });

  it('its running ones are counted without reading the others', async () => {
    expect(await rowsReadBy(async (replays) => expect(await replays.countRunning(owner)).toBe(1))).toBe(1);
  });

  it('its running ones are cancelled without reading the others', async () => {
    expect(await rowsReadBy((replays) => replays.cancelAll(owner))).toBe(1);
  });

  it('those to a webhook that is disabled are cancelled without reading the ended ones', async () => {
    expect(await rowsReadBy((_, transaction) => cancelReplaysTo(transaction, webhook))).toBeLessThan(110);
  });

  it('the next turn is found without reading the ended ones', async () => {
    expect(await rowsReadBy((replays) => replays.claim())).toBeLessThan(310);
  });

  it('old ones are deleted without reading the others', async () => {
    expect(await rowsReadBy((replays) => replays.deleteOld())).toBe(1);
  });
});
