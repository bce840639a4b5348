import { setTimeout as sleep } from 'node:timers/promises';

/** In event ids, the partition is the remainder. */
const PARTITIONS = 4096;

/**
 * The partition of the topic `events` that has a source's events. Publishes one.
 * @param {ReturnType<typeof import('../../scripts/temporary/own-system.mjs').apiClient>} client
 * @param {string} source that has no events yet
 */
export async function partitionOf(client, source) {
  await client('POST', `/sources/${source}/events`, { n: -1 });
  for (;;) {
    const [first] = await client('GET', `/sources/${source}/event_summaries`);
    if (first) return Number(first.id.split('-')[1]) % PARTITIONS;
    await sleep(50);
  }
}
