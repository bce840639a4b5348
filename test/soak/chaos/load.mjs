import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { apiClient } from '../../../scripts/temporary/own-system.mjs';
import { EventStream } from './event-stream.mjs';
import { request } from './request.mjs';
import { ABORTED, transact } from './transactions.mjs';

const SILENT = "export default { name: 'silent' }";
const RELAY = "export default { name: 'relay', run(event) { this.$emit(event); } }";
const TICK_MS = 20;
/** Events per second of each emitter that relays, and of each that is watched live: the store keeps the last 100, which is longer than an outage. */
const SLOW_PER_SECOND = 1;
const REST_EVERY_MS = 250;
const CHANGE_EVERY_MS = 500;

/**
 * The events of one emitter, numbered from 1, and what has become of them.
 *
 *   direct: Kafka ─► webhook │ relay: Kafka ─► source ─► webhook │ live: Kafka ─► webhook and live stream │ rest: REST API ─► webhook
 *   transaction: Kafka, in transactions ─► webhook
 *
 * @typedef {object} Line
 * @property {'direct' | 'relay' | 'live' | 'rest' | 'transaction'} kind
 * @property {string} name
 * @property {string} emitter
 * @property {number} partition of the topic `events`
 * @property {number} emitted
 * @property {number[]} offsets of the acknowledged events, from number 1 on; -1 if it is unknown
 * @property {number[]} acknowledgedAt in ms
 * @property {number[]} arrived how often each has arrived at the webhook
 * @property {Set<number>} resent those that may be in the topic twice
 * @property {number} newest
 * @property {{ n: number, eventId: string, at: number, after: number }[]} late those that arrived behind later ones
 * @property {EventStream} [stream]
 */

/** Events of many kinds at a steady rate, with a receiver of webhooks and clients of live streams that count what arrives. */
export class Load {
  /** @type {Map<string, Line>} */
  lines = new Map();
  acknowledged = 0;
  arrivals = 0;
  /** How often an event of an aborted transaction has arrived. */
  abortedArrivals = 0;
  /** How often the REST API returned each status for a publication, or failed. @type {Record<string, number>} */
  statuses = {};
  /** The same for changes of a source. @type {Record<string, number>} */
  writeStatuses = {};
  /** How the API explained that it could not do something. @type {Set<string>} */
  explanations = new Set();
  /** The longest time that a publication has taken, in ms. */
  longestAnswerMs = 0;
  /** Times without any delivery of a direct event, in ms. @type {{ from: number, to: number }[]} */
  silences = [];
  lastArrivalAt = 0;
  /** When a repetition arrived, in ms. @type {number[]} */
  repetitions = [];
  stopped = false;
  /** Whether the receiver refuses direct events of every fourth emitter. */
  isFailing = false;

  /** @param {import('./system.mjs').System} system @param {{ perSecond: number, random: () => number, emitters?: number }} options */
  constructor(system, { perSecond, random, emitters = 40 }) {
    this.system = system;
    this.perSecond = perSecond;
    this.random = random;
    this.emitters = emitters;
    this.receiver = createServer((incoming, response) => this.receive(incoming, response));
    this.producer = system.kafka.producer({ allowAutoTopicCreation: false });
    /** @type {Promise<unknown>[]} */
    this.work = [];
  }

  /** Creates the sources, webhooks and subscriptions. */
  async setUp() {
    await new Promise((resolve) => this.receiver.listen(0, '127.0.0.1', () => resolve(undefined)));
    const { port } = /** @type {import('node:net').AddressInfo} */ (this.receiver.address());
    const { apiKey } = this.system;
    const api = apiClient({ apiUrl: this.system.apiUrls[0] ?? '', apiKey });
    const silent = await api('POST', '/components', { component_code: SILENT });
    const relay = await api('POST', '/components', { component_code: RELAY });
    await this.producer.connect();
    const metadata = await this.system.withAdmin((admin) => admin.fetchTopicMetadata({ topics: ['events'] }));
    const partitionMetadata = metadata.topics[0]?.partitions ?? [];
    const partitionOf = kafkajs.Partitioners.DefaultPartitioner();
    const kinds = /** @type {const} */ ({ direct: this.emitters, relay: 4, live: 4, rest: 1, transaction: 2 });
    for (const [kind, count] of Object.entries(kinds)) {
      for (let n = 0; n < count; n++) {
        const name = `${kind}-${n}`;
        const { id } = await api('POST', '/sources', { component_id: silent.id });
        let listened = id;
        if (kind === 'relay') {
          listened = (await api('POST', '/sources', { component_id: relay.id })).id;
          await api('POST', `/subscriptions?emitter_id=${id}&listener_id=${listened}`);
        }
        const webhook = await api('POST', `/webhooks?url=${encodeURIComponent(`http://127.0.0.1:${port}/${name}`)}`);
        await api('POST', `/subscriptions?emitter_id=${listened}&listener_id=${webhook.id}`);
        this.lines.set(name, {
          kind: /** @type {Line['kind']} */ (kind),
          ...{ name, emitter: id, emitted: 0, offsets: [], acknowledgedAt: [], arrived: [], resent: new Set(), newest: 0, late: [] },
          partition: partitionOf({ topic: 'events', partitionMetadata, message: { key: id, value: '' } }),
        });
      }
    }
    for (const line of this.ofKind('live')) line.stream = new EventStream(this.system, line.emitter);
  }

  /** @param {Line['kind'][]} kinds */
  ofKind(...kinds) {
    return [...this.lines.values()].filter(({ kind }) => kinds.includes(kind));
  }

  start() {
    this.lastArrivalAt = Date.now();
    this.work = [this.produce(), this.publish(), this.change(), ...this.ofKind('transaction').map((line) => transact(this, line))];
  }

  /** Resolves when all events that were produced are acknowledged. */
  async stop() {
    this.stopped = true;
    await Promise.all(this.work);
    await this.producer.disconnect().catch(() => {});
  }

  close() {
    for (const { stream } of this.lines.values()) stream?.close();
    this.receiver.closeAllConnections();
    this.receiver.close();
  }

  async produce() {
    const direct = this.ofKind('direct');
    const slow = this.ofKind('relay', 'live');
    for (let due = performance.now(), owed = 0, owedSlow = 0, turn = 0; !this.stopped;) {
      due += TICK_MS;
      const wait = due - performance.now();
      if (wait > 0) await sleep(wait);
      // after an outage of the broker, it does not catch up on events that it could not send
      else due = performance.now();
      owed += (this.perSecond * TICK_MS) / 1000;
      owedSlow += (slow.length * SLOW_PER_SECOND * TICK_MS) / 1000;
      /** @type {{ line: Line, n: number }[]} */
      const events = [];
      for (; owed >= 1; owed--) events.push(next(/** @type {Line} */ (direct[Math.floor(this.random() * direct.length)])));
      for (; owedSlow >= 1; owedSlow--) events.push(next(/** @type {Line} */ (slow[turn++ % slow.length])));
      if (events.length > 0) await this.send(events);
    }
  }

  /** Repeats a batch until it is acknowledged, like an outbox. @param {{ line: Line, n: number }[]} events */
  async send(events) {
    const messages = events.map(({ line, n }) => ({
      ...{ key: line.emitter, partition: line.partition, headers: { ce_id: `${line.name}-${n}` } },
      value: JSON.stringify({ line: line.name, n, note: 'x'.repeat(150) }),
    }));
    for (;;) {
      try {
        const results = await this.producer.send({ topic: 'events', acks: -1, messages });
        const bases = new Map(results.map(({ partition, baseOffset }) => [partition, Number(baseOffset ?? -1)]));
        const now = Date.now();
        for (const { line, n } of events) {
          const offset = bases.get(line.partition) ?? -1;
          bases.set(line.partition, offset + 1);
          line.offsets[n] = offset;
          line.acknowledgedAt[n] = now;
        }
        this.acknowledged += events.length;
        return;
      } catch {
        for (const { line, n } of events) line.resent.add(n);
        await sleep(200);
      }
    }
  }

  /** Publishes over the REST API, one event after the other. A repetition has the same emit id. */
  async publish() {
    const [line] = this.ofKind('rest');
    if (!line) return;
    const { apiUrls, apiKey } = this.system;
    for (let tries = 0; !this.stopped; await sleep(REST_EVERY_MS)) {
      const n = line.emitted + 1;
      const url = `${apiUrls[tries++ % apiUrls.length]}/sources/${line.emitter}/events?id=${line.name}-${n}`;
      const begin = performance.now();
      const status = await request('POST', url, { apiKey, body: { line: line.name, n } }).then(
        (response) => this.statusOf(response),
        (/** @type {{ code?: string }} */ { code }) => code ?? 'broken',
      );
      this.longestAnswerMs = Math.max(this.longestAnswerMs, performance.now() - begin);
      this.statuses[status] = (this.statuses[status] ?? 0) + 1;
      if (status !== '202') {
        line.resent.add(n);
        continue;
      }
      line.emitted = n;
      line.offsets[n] = -1;
      line.acknowledgedAt[n] = Date.now();
      this.acknowledged += 1;
    }
  }

  /** Changes the name of a source over the REST API, one time after the other. */
  async change() {
    const [line] = this.ofKind('rest');
    const { apiUrls, apiKey } = this.system;
    for (let n = 1; !this.stopped; n++, await sleep(CHANGE_EVERY_MS)) {
      const url = `${apiUrls[n % apiUrls.length]}/sources/${line?.emitter}`;
      const status = await request('PATCH', url, { apiKey, body: { name: `name-${n}` } }).then(
        (response) => this.statusOf(response),
        (/** @type {{ code?: string }} */ { code }) => code ?? 'broken',
      );
      this.writeStatuses[status] = (this.writeStatuses[status] ?? 0) + 1;
    }
  }

  /** @param {{ status: number, body: any }} response */
  statusOf({ status, body }) {
    if (status >= 400) this.explanations.add(`${status} ${body?.detail}`);
    return String(status);
  }

  /** @param {import('node:http').IncomingMessage} incoming @param {import('node:http').ServerResponse} response */
  receive(incoming, response) {
    let text = '';
    incoming.setEncoding('utf8');
    incoming.on('data', (part) => (text += part));
    incoming.on('end', () => {
      const line = this.lines.get((incoming.url ?? '').slice(1));
      if (this.isFailing && /^direct-\d*[048]$/.test(line?.name ?? '')) return response.writeHead(503).end();
      response.writeHead(200).end();
      const { n } = JSON.parse(text);
      if (n === ABORTED) this.abortedArrivals += 1;
      // an event on `$errors`, or another one that this load has not emitted
      if (!line || typeof n !== 'number') return;
      this.arrivals += 1;
      line.arrived[n] = (line.arrived[n] ?? 0) + 1;
      if (line.kind === 'direct') {
        const now = Date.now();
        if (now - this.lastArrivalAt > 500) this.silences.push({ from: this.lastArrivalAt, to: now });
        this.lastArrivalAt = now;
      }
      if (line.arrived[n] > 1) return void this.repetitions.push(Date.now());
      if (n < line.newest) line.late.push({ n, eventId: String(incoming.headers['ce-sluiceevent']), at: Date.now(), after: line.newest });
      line.newest = Math.max(line.newest, n);
    });
  }
}

/** @param {Line} line */
const next = (line) => ({ line, n: ++line.emitted });
