import { setTimeout as sleep } from 'node:timers/promises';
import { APPS } from '../../../scripts/processes/apps.mjs';

/** How long a backup is older than the state that it replaces. */
const BACKUP_AGE_MS = 8000;
const DISK_FULL_MS = 20_000;
/** How long nobody reads before retention deletes what there is. */
const UNREAD_MS = 2000;
const REPORTED_WITHIN_MS = 30_000;
/** The year 2100. */
const FUTURE_MS = 4_102_444_800_000;

/**
 * The records that a fault has destroyed although Kafka had acknowledged them. They must be reported.
 *
 * @typedef {object} Damage
 * @property {'log' | 'retention'} kind log: everything that routing had not committed; retention: these offsets of these partitions
 * @property {number} at ms
 * @property {Map<number, { from: number, to: number }>} offsets by partition
 */

/**
 * @typedef {object} Fault
 * @property {string} name
 * @property {number} weight how often it is chosen
 * @property {() => Promise<Damage | void>} run resolves when the fault is over
 */

/**
 * @param {import('./system.mjs').System} system
 * @param {import('./load.mjs').Load} load
 * @param {{ random: () => number, replicas: number }} options
 * @returns {Fault[]}
 */
export function faultsOf(system, load, { random, replicas }) {
  const targets = [...APPS, 'broker', 'postgres'];
  const one = () => Math.floor(random() * replicas);
  const seconds = [5, 40, 70];
  return [
    ...targets.map((target) => ({ name: `kill ${target}`, weight: 6, run: () => system.kill(target, one()) })),
    ...targets.flatMap((target) =>
      seconds.map((each) => ({
        name: `pause ${target} ${each} s`,
        weight: each === 5 ? 2 : 0.5,
        run: () => system.pause(target, each * 1000, one()),
      })),
    ),
    { name: 'log lost', weight: 2, run: () => loseLog(system) },
    { name: 'topic deleted', weight: 2, run: () => deleteTopic(system) },
    { name: 'database restored', weight: 4, run: () => restoreDatabase(system) },
    { name: 'record from the future', weight: 2, run: () => sendFromTheFuture(system, load) },
    { name: 'retention', weight: 2, run: () => passRetention(system) },
    ...(system.stores.hasDisks
      ? /** @type {const} */ (['broker', 'postgres']).map((store) => ({
          name: `disk full ${store}`,
          weight: 2,
          run: () => fillDisk(system, store),
        }))
      : []),
  ];
}

/** @param {Map<number, number>} committed */
const fromCommitted = (committed) => new Map([...committed].map(([partition, from]) => [partition, { from, to: Infinity }]));

/** The broker comes back with an empty disk. @param {import('./system.mjs').System} system @returns {Promise<Damage>} */
export async function loseLog(system) {
  const offsets = fromCommitted(await system.committed());
  await system.loseLog();
  return { kind: 'log', at: Date.now(), offsets };
}

/** @param {import('./system.mjs').System} system @returns {Promise<Damage>} */
export async function deleteTopic(system) {
  const offsets = fromCommitted(await system.committed());
  await system.withAdmin((admin) => admin.deleteTopics({ topics: ['events'] }));
  return { kind: 'log', at: Date.now(), offsets };
}

/** All databases return to the state of a few seconds ago, while the services run. @param {import('./system.mjs').System} system */
async function restoreDatabase(system) {
  const backup = await system.backUp();
  await sleep(BACKUP_AGE_MS);
  await system.restore(backup);
}

/**
 * A producer with a wrong clock writes while the topic takes its timestamps.
 * @param {import('./system.mjs').System} system @param {import('./load.mjs').Load} load
 */
async function sendFromTheFuture(system, load) {
  const set = (/** @type {Record<string, string>} */ entries) =>
    system.withAdmin((admin) =>
      admin.alterConfigs({
        validateOnly: false,
        resources: [{ type: 2, name: 'events', configEntries: Object.entries(entries).map(([name, value]) => ({ name, value })) }],
      }),
    );
  // older brokers accept every time
  await set({ 'message.timestamp.type': 'CreateTime', 'message.timestamp.after.max.ms': '9223372036854775807' });
  try {
    const [line] = load.ofKind('direct');
    const producer = system.kafka.producer({ allowAutoTopicCreation: false });
    await producer.connect();
    await producer.send({
      topic: 'events',
      messages: [
        {
          key: line?.emitter ?? '',
          partition: line?.partition ?? 0,
          timestamp: String(FUTURE_MS),
          value: JSON.stringify('from the future'),
        },
      ],
    });
    await producer.disconnect();
  } finally {
    await set({ 'message.timestamp.type': 'LogAppendTime' });
  }
}

/** Retention deletes what routing and the event store have not read, because they are down. @param {import('./system.mjs').System} system @returns {Promise<Damage>} */
async function passRetention(system) {
  const apps = /** @type {const} */ (['routing', 'event-store']);
  await system.stopApps(apps, 'SIGKILL');
  const offsets = await deleteUnread(system).finally(() => system.startApps(apps));
  const at = Date.now();
  // another damage in between would be reported instead of this one
  for (const deadline = at + REPORTED_WITHIN_MS; Date.now() < deadline; await sleep(500)) {
    const committed = await system.committed();
    if ([...offsets].every(([partition, { to }]) => (committed.get(partition) ?? 0) >= to)) break;
  }
  return { kind: 'retention', at, offsets };
}

/** @param {import('./system.mjs').System} system @returns {Promise<Damage['offsets']>} */
async function deleteUnread(system) {
  const committed = await system.committed();
  await sleep(UNREAD_MS);
  return system.withAdmin(async (admin) => {
    const partitions = (await admin.fetchTopicOffsets('events')).map(({ partition, high }) => ({ partition, offset: high }));
    await admin.deleteTopicRecords({ topic: 'events', partitions });
    return new Map(partitions.map(({ partition, offset }) => [partition, { from: committed.get(partition) ?? 0, to: Number(offset) }]));
  });
}

/** @param {import('./system.mjs').System} system @param {'broker' | 'postgres'} store */
async function fillDisk(system, store) {
  const free = await system.fillDisk(store);
  await sleep(DISK_FULL_MS);
  await free();
  await sleep(2000);
  await system.ready(store);
}
