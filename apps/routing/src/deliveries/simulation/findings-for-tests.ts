import type { WebhookId } from '#contracts';
import { type Arrival, STUMBLED_OVER } from './endpoints-for-tests.js';

export interface Evidence {
  /** In the order in which attempts began. */
  arrivals: Arrival[];
  outages: { webhookId: WebhookId; from: number; to: number }[];
  /** How many events each emitter has emitted. */
  emitted: Map<string, number>;
  webhooks: WebhookId[];
  /** Those that never misbehave. */
  healthy: WebhookId[];
  /** Those that take long with some events of one emitter. */
  stumbling: WebhookId[];
  calm: boolean;
  /** Work that has not ended. */
  left: string[];
}

export interface Findings {
  problems: string[];
  deliveries: number;
  attempts: number;
  /** Accepted more than once. */
  repeated: number;
}

/** Into an outage attempts stop: what began it, and probes after that. */
const UNTIL_NOTICED_MS = 3000;
const PROBES_IN_OUTAGE = 12;
/**
 * The longest wait of a healthy endpoint when only other endpoints misbehave; its own bad events aside. An endpoint that begins to hang may
 * take all the capacity, which is tight here, until its attempts count as slow, after a second. Two endpoints may do so in turn.
 */
const HEALTHY_WAIT_MS = 2100;

/** The violated promises, in words. */
export function findProblems(evidence: Evidence): Findings {
  const problems = [
    ...evidence.left,
    ...lostOrRepeated(evidence),
    ...disordered(evidence),
    ...badIds(evidence),
    ...hammered(evidence),
    ...delayed(evidence),
  ];
  const accepted = evidence.arrivals.filter((arrival) => arrival.accepted);
  const deliveries = new Set(accepted.map(nameOf)).size;
  return { problems: problems.slice(0, 20), deliveries, attempts: evidence.arrivals.length, repeated: accepted.length - deliveries };
}

const nameOf = ({ webhookId, emitterId, n }: Arrival): string => `${emitterId} #${n} to ${webhookId}`;

function lostOrRepeated({ arrivals, emitted, webhooks, calm }: Evidence): string[] {
  const times = new Map<string, number>();
  for (const arrival of arrivals) if (arrival.accepted) times.set(nameOf(arrival), (times.get(nameOf(arrival)) ?? 0) + 1);
  const problems: string[] = [];
  for (const [emitterId, count] of emitted) {
    for (let n = 1; n <= count; n++) {
      for (const webhookId of webhooks) {
        const name = `${emitterId} #${n} to ${webhookId}`;
        if (!times.has(name)) problems.push(`lost: ${name}`);
        // only a failure between the response and its being stored may repeat a delivery
        else if (calm && times.get(name) !== 1) problems.push(`repeated: ${name}`);
      }
    }
  }
  return problems;
}

/** First attempts of an emitter's events to one webhook begin in the order of emission. */
function disordered({ arrivals }: Evidence): string[] {
  const problems: string[] = [];
  const newest = new Map<string, number>();
  const seen = new Set<string>();
  for (const arrival of arrivals) {
    if (seen.has(nameOf(arrival))) continue;
    seen.add(nameOf(arrival));
    const way = `${arrival.emitterId} to ${arrival.webhookId}`;
    if (arrival.n < (newest.get(way) ?? 0)) problems.push(`out of order: ${nameOf(arrival)} after #${newest.get(way)}`);
    else newest.set(way, arrival.n);
  }
  return problems;
}

/** The webhook-id is one for all attempts of a delivery, and another for each delivery. */
function badIds({ arrivals }: Evidence): string[] {
  const problems: string[] = [];
  const byDelivery = new Map<string, string>();
  const byId = new Map<string, string>();
  for (const arrival of arrivals) {
    const name = nameOf(arrival);
    if ((byDelivery.get(name) ?? arrival.messageId) !== arrival.messageId) problems.push(`another webhook-id: ${name}`);
    if ((byId.get(arrival.messageId) ?? name) !== name) problems.push(`the webhook-id of ${byId.get(arrival.messageId)}: ${name}`);
    byDelivery.set(name, arrival.messageId);
    byId.set(arrival.messageId, name);
  }
  return problems;
}

function hammered({ arrivals, outages }: Evidence): string[] {
  return outages.flatMap(({ webhookId, from, to }) => {
    const during = arrivals.filter(
      (arrival) => arrival.webhookId === webhookId && arrival.atMs > from + UNTIL_NOTICED_MS && arrival.atMs < to,
    );
    return during.length > PROBES_IN_OUTAGE ? [`hammered: ${webhookId} ${during.length} times in ${to - from} ms`] : [];
  });
}

/** At a stumbling endpoint, the events of one emitter do not delay those of the others. */
function delayed({ arrivals, healthy, stumbling, calm }: Evidence): string[] {
  if (!calm) return [];
  const isPrompt = ({ webhookId, emitterId }: Arrival) =>
    healthy.includes(webhookId) || (stumbling.includes(webhookId) && emitterId !== STUMBLED_OVER);
  const seen = new Set<string>();
  return arrivals.flatMap((arrival) => {
    const first = !seen.has(nameOf(arrival));
    seen.add(nameOf(arrival));
    const waited = arrival.atMs - arrival.emittedAtMs;
    return first && isPrompt(arrival) && waited > HEALTHY_WAIT_MS ? [`late: ${nameOf(arrival)} after ${waited} ms`] : [];
  });
}
