import { afterAll, beforeAll, expect } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { Receiver } from './support/receiver.js';
import { startSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

const CODE = "export default { name: 'silent' }";
const WEBHOOKS = 200;
const EVENTS = 100;
/** In event ids, the partition is the remainder. */
const PARTITIONS = 4096;

let system: System;
let receiver: Receiver;

beforeAll(async () => {
  [system, receiver] = await Promise.all([startSystem(), Receiver.start()]);
});
afterAll(async () => {
  await Promise.all([system?.stop(), receiver?.close()]);
});

const publish = async (api: Api, source: string, events: object[]): Promise<void> => {
  const batch = events.map((data) => ({ specversion: '1.0', id: randomUUID(), source: 'test', type: 'default', data }));
  const { status } = await api.raw('POST', `/sources/${source}/events`, JSON.stringify(batch), {
    'content-type': 'application/cloudevents-batch+json',
  });
  expect(status).toBe(202);
};

/** The partition of a source's events, by the id of its first one. */
async function partitionOf(api: Api, source: string): Promise<number> {
  await publish(api, source, [{ first: true }]);
  const id = await eventually(async () => {
    const { data } = (await api.get(`/sources/${source}/event_summaries`)).body;
    expect(data).toHaveLength(1);
    return (data as { id: string }[])[0]!.id;
  });
  return Number(id.split('-')[1]) % PARTITIONS;
}

/** The numbers of the events that a webhook has got, without repeats. */
const receivedBy = (path: string): number[] => [
  ...new Set(receiver.received.filter((each) => each.path === path).map(({ body }) => (body as { n: number }).n)),
];
/** The events of a source that wait in the database for capacity. */
async function postponed(source: string): Promise<number> {
  const url = new URL(process.env.SLUICE_TEST_DATABASE_URL!);
  url.pathname = '/routing';
  const client = new pg.Client({ connectionString: url.toString() });
  await client.connect();
  try {
    const { rows } = await client.query<{ count: number }>('SELECT count(*)::int FROM postponed_event WHERE emitter_id = $1', [source]);
    return rows[0]!.count;
  } finally {
    await client.end();
  }
}

needing('processes', 'databases', 'control', 'receiver', 'accounts').it(
  'a flood of events with many listeners does not delay another account in the same partition, and arrives in order, also after a crash and a restart',
  async () => {
    const [flooding, other] = [await system.account(), await system.account()];
    const flood = (await flooding.source(CODE)).id as string;
    const partition = await partitionOf(flooding, flood);
    let quiet: string;
    do quiet = (await other.source(CODE)).id as string;
    while ((await partitionOf(other, quiet)) !== partition);
    const paths = Array.from({ length: WEBHOOKS }, (_, index) => `/flood/${index}`);
    for (const path of paths) await flooding.subscribe(flood, await flooding.webhook(`${receiver.url.slice(0, -1)}${path}`));
    await other.subscribe(quiet, await other.webhook(`${receiver.url}quiet`));
    await publish(other, quiet, [{ n: 0 }]);
    await eventually(() => expect(receivedBy('/quiet')).toEqual([0]));

    const numbers = Array.from({ length: EVENTS }, (_, n) => n);
    await publish(
      flooding,
      flood,
      numbers.map((n) => ({ n })),
    );
    await publish(other, quiet, [{ n: 1 }]);
    await eventually(() => expect(receivedBy('/quiet')).toEqual([0, 1]), { withinMs: 60_000 });
    expect(await postponed(flood)).toBeGreaterThan(EVENTS / 2);

    await system.apps.kill('routing');
    await eventually(() => expect(new Set(paths.map((path) => receivedBy(path).length))).toEqual(new Set([EVENTS])), { withinMs: 120_000 });
    for (const path of paths) expect(receivedBy(path)).toEqual(numbers);

    await eventually(async () => expect(await postponed(flood)).toBe(0));

    // events are postponed while another account has deliveries
    await publish(other, quiet, [{ n: 2 }]);
    await eventually(() => expect(receivedBy('/quiet')).toEqual([0, 1, 2]), { withinMs: 60_000 });
    // the log is read up to its end, so only the database has these
    const later = numbers.map((n) => n + EVENTS);
    await publish(
      flooding,
      flood,
      later.map((n) => ({ n })),
    );
    await eventually(async () => expect(await postponed(flood)).toBeGreaterThan(EVENTS / 2), { withinMs: 60_000 });
    await system.apps.restart('routing');
    await eventually(() => expect(new Set(paths.map((path) => receivedBy(path).length))).toEqual(new Set([2 * EVENTS])), {
      withinMs: 120_000,
    });
    for (const path of paths) expect(receivedBy(path)).toEqual([...numbers, ...later]);
    await eventually(async () => expect(await postponed(flood)).toBe(0));
  },
);
