import { setTimeout as sleep } from 'node:timers/promises';
import { request } from './request.mjs';
import { ABORTED } from './transactions.mjs';

const KEPT = 100;
/** Without progress for this long at the end, what is missing is lost. */
const STALLED_MS = 60_000;
/** A record that passes through several topics, or has an unknown offset, may be destroyed with the log for this long. */
const ON_THE_WAY_MS = 120_000;

/**
 * Waits until everything has arrived that can arrive, and compares it with what was acknowledged.
 *
 * @param {import('./system.mjs').System} system
 * @param {import('./load.mjs').Load} load
 * @param {import('./faults.mjs').Damage[]} damages
 */
export async function verdict(system, load, damages) {
  for (let [last, since] = [missing(load, damages), Date.now()]; last > 0 && Date.now() - since < STALLED_MS; await sleep(500)) {
    const now = missing(load, damages);
    if (now !== last) [last, since] = [now, Date.now()];
  }
  const deliveries = judge(system, load, damages);
  const readers = await judgeReaders(system, load, damages);
  const { lost, unreported, disordered } = deliveries.found;
  const { aborted_stored, store_lost, store_disordered, live_lost, live_disordered } = readers.found;
  const aborted = load.abortedArrivals + aborted_stored;
  return {
    found: { ...deliveries.found, aborted_delivered: load.abortedArrivals, ...readers.found },
    details: [...deliveries.details, ...readers.details],
    isGood: lost + unreported + disordered + store_lost + store_disordered + live_lost + live_disordered + aborted === 0,
  };
}

/**
 * Compares what has arrived with what was acknowledged.
 *
 * @param {import('./system.mjs').System} system
 * @param {import('./load.mjs').Load} load
 * @param {import('./faults.mjs').Damage[]} damages
 */
function judge(system, load, damages) {
  const found = { lost: 0, unreported: 0, destroyed: 0, repeated: 0, repeated_by_producer: 0, disordered: 0 };
  /** @type {Map<import('./faults.mjs').Damage, number>} */
  const byDamage = new Map();
  /** @type {string[]} */
  const details = [];
  for (const line of load.lines.values()) {
    for (let n = 1; n <= line.emitted; n++) {
      const times = line.arrived[n] ?? 0;
      if (times > 1) found[line.resent.has(n) ? 'repeated_by_producer' : 'repeated'] += times - 1;
      if (times > 0 || line.acknowledgedAt[n] === undefined) continue;
      const damage = damageOf(line, n, damages);
      if (damage) {
        found.destroyed += 1;
        byDamage.set(damage, (byDamage.get(damage) ?? 0) + 1);
      } else {
        found.lost += 1;
        if (details.length < 50)
          details.push(`lost ${line.name} ${n}, acknowledged at ${clock(line.acknowledgedAt[n])}, offset ${line.offsets[n]}`);
      }
    }
    for (const { n, eventId, at, after } of line.late) {
      if (system.failedAttempts.has(eventId)) continue;
      found.disordered += 1;
      if (details.length < 50) details.push(`disordered ${line.name} ${n} ${eventId} at ${clock(at)}, after ${after}`);
    }
  }
  for (const [damage, count] of byDamage) {
    if (isReported(system, damage, count)) continue;
    found.unreported += count;
    details.push(
      `not reported: ${count} events that were destroyed at ${clock(damage.at)} (${damage.kind}: ${JSON.stringify([...damage.offsets])})`,
    );
    for (const { app, msg, at, missed, group } of system.reports) {
      if (at > damage.at - 10_000 && at < damage.at + 60_000) details.push(`${clock(at)} ${app} ${msg} ${group ?? ''} ${missed ?? ''}`);
    }
  }
  return { found, details };
}

/** @param {number} ms */
export const clock = (ms) => new Date(ms).toISOString().slice(11, 23);

/**
 * The fault that has destroyed an event.
 *
 * @param {import('./load.mjs').Line} line @param {number} n @param {import('./faults.mjs').Damage[]} damages
 */
function damageOf(line, n, damages) {
  const acknowledgedAt = line.acknowledgedAt[n] ?? 0;
  const offset = line.offsets[n] ?? -1;
  // what the listener has emitted for it has another offset, which is unknown here
  const isOnTheWay = offset < 0 || line.kind === 'relay';
  const log = damages.find(({ kind, at }) => kind === 'log' && at >= acknowledgedAt);
  const retention = damages.find(({ kind, at, offsets }) => {
    const range = offsets.get(line.partition);
    if (kind !== 'retention' || at < acknowledgedAt || !range || (log && log.at < at)) return false;
    return isOnTheWay ? acknowledgedAt > at - ON_THE_WAY_MS : offset >= range.from && offset < range.to;
  });
  if (retention) return retention;
  if (!log) return undefined;
  if (isOnTheWay) return acknowledgedAt > log.at - ON_THE_WAY_MS ? log : undefined;
  const wasRead = offset < (log.offsets.get(line.partition)?.from ?? 0);
  return wasRead ? undefined : log;
}

/** @param {import('./system.mjs').System} system @param {import('./faults.mjs').Damage} damage @param {number} count */
function isReported(system, { kind, at }, count) {
  const reports = system.reports.filter((report) => report.app === 'routing' && report.at > at - 10_000);
  if (kind === 'log') return reports.some(({ msg }) => msg === 'log.replaced');
  const missed = reports.filter(({ msg, group }) => msg === 'log.records-missed' && group === 'routing.events');
  return missed.reduce((sum, report) => sum + (report.missed ?? 0), 0) >= count;
}

/** Whether everything has arrived that can arrive. @param {import('./load.mjs').Load} load @param {import('./faults.mjs').Damage[]} damages */
function missing(load, damages) {
  let count = 0;
  for (const line of load.lines.values()) {
    for (let n = 1; n <= line.emitted; n++)
      if (!line.arrived[n] && line.acknowledgedAt[n] !== undefined && !damageOf(line, n, damages)) count += 1;
  }
  return count;
}

/**
 * Compares the stored events and the live streams with what was acknowledged since the last fault that has destroyed events.
 *
 * @param {import('./system.mjs').System} system @param {import('./load.mjs').Load} load @param {import('./faults.mjs').Damage[]} damages
 */
async function judgeReaders(system, load, damages) {
  const found = { aborted_stored: 0, store_lost: 0, store_disordered: 0, live_lost: 0, live_repeated: 0, live_disordered: 0 };
  /** @type {string[]} */
  const details = [];
  const lastDamageAt = Math.max(0, ...damages.map(({ at }) => at));
  for (const line of load.lines.values()) {
    const { body } = await request('GET', `${system.apiUrls[0]}/sources/${line.emitter}/event_summaries?limit=${KEPT}`, system);
    /** @type {number[]} */
    const shown = body.data
      .map((/** @type {{ event: { n?: number } }} */ { event }) => event.n)
      .filter((/** @type {unknown} */ n) => typeof n === 'number')
      .reverse();
    const there = new Set(shown);
    found.aborted_stored += body.data.filter((/** @type {{ event: { n?: unknown } }} */ { event }) => event.n === ABORTED).length;
    // a report on `$errors`, or an event from the future, takes the place of a numbered event
    const others = body.data.length - shown.length;
    for (let n = Math.max(1, line.emitted - KEPT + 1 + others); n <= line.emitted; n++) {
      if ((line.acknowledgedAt[n] ?? 0) <= lastDamageAt || there.has(n)) continue;
      found.store_lost += 1;
      if (details.length < 20) details.push(`not stored: ${line.name} ${n}, acknowledged at ${clock(line.acknowledgedAt[n] ?? 0)}`);
    }
    for (const [index, n] of shown.entries()) {
      if (index === 0 || n > (shown[index - 1] ?? 0)) continue;
      found.store_disordered += 1;
      if (details.length < 20) details.push(`stored in another order: ${line.name} ${shown[index - 1]} before ${n}`);
    }
    if (!line.stream) continue;
    const { numbers } = line.stream;
    const live = new Set(numbers);
    found.live_repeated += numbers.length - live.size;
    let newest = 0;
    for (const n of live) {
      if (n < newest) {
        found.live_disordered += 1;
        if (details.length < 20) details.push(`live in another order: ${line.name} ${n} after ${newest}`);
      }
      newest = Math.max(newest, n);
    }
    for (let n = numbers[0] ?? 1; n <= line.emitted; n++) {
      const at = line.acknowledgedAt[n] ?? 0;
      if (live.has(n) || at === 0 || damages.some((damage) => damage.at >= at && at > damage.at - ON_THE_WAY_MS)) continue;
      found.live_lost += 1;
      if (details.length < 20) details.push(`not live: ${line.name} ${n}, acknowledged at ${clock(at)}`);
    }
  }
  return { found, details };
}
