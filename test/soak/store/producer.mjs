import { setTimeout as sleep } from 'node:timers/promises';
import { emitterIds } from '../../../bench/store/load.mjs';
import { deletionRecord, eventRecord, parseEventId } from '../../../dist/libs/events/src/index.js';

/** A number with which most of them never reach 100 events: all events of these are compared in the end. */
const EMITTERS = 20_000;
/** And a few that go far beyond. */
const HOT_EMITTERS = 150;
const HOT_SHARE = 0.3;
const BATCH = 1500;
/** How often a batch is sent although Kafka already has it, as by an outbox that died before it deleted the records. */
const REPEATED_SHARE = 0.03;
const KEPT = 100;

/**
 * @typedef {object} Emitter the events of one emitter, and those that should be stored
 * @property {string} id
 * @property {number} emitted its events are numbered from 1
 * @property {number[]} kept oldest first
 * @property {Set<number>} deleted
 */

/**
 * Emits as fast as Kafka accepts it, one batch after the other, and repeats a batch until it is acknowledged, like an outbox. Sometimes
 * it deletes a range, by ids that it has read like any client.
 */
export class Producer {
  acknowledged = 0;
  deletions = 0;
  resent = 0;
  stopped = false;
  /** @type {Emitter[]} */
  expected = emitterIds(EMITTERS).map((id) => ({ id, emitted: 0, kept: [], deleted: new Set() }));

  /**
   * @param {import('../../../dist/libs/messaging/src/index.js').Publisher} publisher
   * @param {import('../../../dist/libs/database/src/index.js').Database} database
   * @param {() => number} random
   * @param {import('../../../dist/libs/secrets/src/index.js').SecretBox} box
   */
  constructor(publisher, database, random, box) {
    this.box = box;
    this.publisher = publisher;
    this.database = database;
    this.random = random;
  }

  stop() {
    this.stopped = true;
  }

  async run() {
    while (!this.stopped) {
      const events = Array.from({ length: 1 + Math.floor(this.random() * BATCH) }, () => this.emit());
      const deletions = this.random() < 0.5 ? [await this.delete()] : [];
      // In the middle of a batch, so that there is something in flight before and after it.
      const [records, after] = [[...events.map(({ record }) => record), ...deletions], Array.from({ length: 20 }, () => this.emit())];
      const batch = [...records, ...after.map(({ record }) => record)];
      await this.send(batch);
      if (this.random() < REPEATED_SHARE) await this.send(batch);
      this.acknowledged += events.length + after.length;
      this.deletions += deletions.length;
    }
  }

  /** @param {object[]} records */
  async send(records) {
    for (;;) {
      try {
        return await this.publisher.send(records);
      } catch {
        this.resent += 1;
        await sleep(200);
      }
    }
  }

  pick() {
    const count = this.random() < HOT_SHARE ? HOT_EMITTERS : EMITTERS;
    return this.expected[Math.floor(this.random() * count)];
  }

  emit() {
    const emitter = this.pick();
    const number = ++emitter.emitted;
    emitter.kept.push(number);
    if (emitter.kept.length > KEPT) emitter.kept.shift();
    const json = Buffer.from(
      JSON.stringify({ number, note: 'x'.repeat(Math.floor(this.random() * (this.random() < 0.0003 ? 200_000 : 300))) }),
    );
    return {
      record: { topic: 'events', ...eventRecord({ emitterId: emitter.id, stream: '', emitId: `${emitter.id}-${number}`, json, hops: 0 }) },
    };
  }

  /** A deletion for an emitter that has events: all of them, or those between two currently stored ids. */
  async delete() {
    const emitter = this.pick();
    const { rows } = await this.database
      .query(
        "SELECT ms, seq, convert_from(event, 'UTF8')::json->>'number' AS number FROM event WHERE emitter_id = $1 ORDER BY ms DESC, seq DESC LIMIT 100",
        [emitter.id],
      )
      // PostgreSQL has just been killed: delete everything
      .catch(() => ({ rows: [] }));
    const [one, other] = [rows[Math.floor(this.random() * rows.length)], rows[Math.floor(this.random() * rows.length)]];
    const [start, end] = [one, other].sort((a, b) => (a?.number ?? 0) - (b?.number ?? 0));
    const range = { start: this.random() < 0.7 ? start : undefined, end: this.random() < 0.7 ? end : undefined };
    emitter.kept = emitter.kept.filter((number) => {
      const isIn = (!range.start || number >= range.start.number) && (!range.end || number <= range.end.number);
      if (isIn) emitter.deleted.add(number);
      return !isIn;
    });
    /** @param {{ ms: number, seq: number } | undefined} row */
    const idOf = (row) => (row && parseEventId(`${row.ms}-${row.seq}`) ? `${row.ms}-${row.seq}` : undefined);
    const record = deletionRecord({ emitterId: emitter.id, startId: idOf(range.start), endId: idOf(range.end) }, this.box);
    return { topic: 'events', ...record };
  }
}
