import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { EVENTS_TOPIC, Unavailable } from '#contracts';
import { KAFKA, type KafkaClient, LogConsumer, type LogRecord, type Position } from '#messaging';
import { LOG, type Log } from '#observability';
import { LiveConfig } from './live.config.js';
import { LiveHub, type LiveListener, type Seam } from './live-hub.js';
import { StorePositions } from './store-positions.js';

const READY_WITHIN_MS = 10_000;
/** After so many records of one batch sockets get their turn: else a burst would pile up in memory that its readers could take. */
const RECORDS_AT_ONCE = 50;

interface Reading {
  consumer: LogConsumer;
  started: Promise<void>;
  /** Resolves when it reads and knows from where. */
  ready: Promise<void>;
}

/**
 * Reads the topic `events` for the clients of this process, and only while there are any: each process by itself, all
 * partitions. It begins where the store stands, with the store's clocks, for the ids of events are made from them.
 *
 *   idle ── the first joins ──► reading ── the last has left, a while ago ──► idle
 */
@Injectable()
export class LiveReader {
  private readonly group = `gateway.live.${randomUUID()}`;
  private readonly hub: LiveHub;
  private users = 0;
  private reading: Reading | undefined;
  private stopped: Promise<void> = Promise.resolve();
  private idleTimer: NodeJS.Timeout | undefined;

  constructor(
    @Inject(KAFKA) private readonly kafka: KafkaClient,
    @Inject(LOG) private readonly log: Log,
    private readonly store: StorePositions,
    private readonly config: LiveConfig,
  ) {
    this.hub = new LiveHub({ maxEventBytes: config.maxEventBytes });
  }

  /** Hands the listener all events from the answered seam on, until it leaves. Throws Unavailable when the log can't be read. */
  async join(listener: LiveListener): Promise<Seam> {
    this.users += 1;
    clearTimeout(this.idleTimer);
    try {
      await within(READY_WITHIN_MS, (this.reading ??= this.start()).ready);
    } catch (error) {
      this.leave(listener);
      this.log.warn({ err: error }, 'live.not-reading');
      throw new Unavailable('events cannot be read from Kafka');
    }
    return this.hub.join(listener);
  }

  /** Each that has joined leaves once. After the last one the log is read a while longer, for whoever reconnects. */
  leave(listener: LiveListener): void {
    this.hub.leave(listener);
    this.users -= 1;
    if (this.users === 0) this.idleTimer = setTimeout(() => void this.stop(), this.config.lingerMs).unref();
  }

  /** Stops reading; whoever joins later has it begin anew. */
  stop(): Promise<void> {
    clearTimeout(this.idleTimer);
    const { reading } = this;
    this.reading = undefined;
    if (reading) {
      this.stopped = reading.started
        .catch(() => {})
        .then(() => reading.consumer.stop())
        .catch((error: Error) => this.log.warn({ err: error }, 'live.not-stopped'))
        .then(() => this.hub.reset());
      this.log.info({ group: this.group }, 'live.idle');
    }
    return this.stopped;
  }

  private start(): Reading {
    const known = Promise.withResolvers<void>();
    const consumer = new LogConsumer(this.kafka, this.log, {
      group: this.group,
      topic: EVENTS_TOPIC,
      // the API is as ready without it
      vital: false,
      ownGroup: true,
      positions: async (partitions) => {
        const positions = await this.positionsOf(partitions);
        known.resolve();
        return positions;
      },
      handle: (_partition, records) => this.handOut(records),
    });
    const started = this.stopped.then(() => consumer.start());
    const reading: Reading = { consumer, started, ready: started.then(() => known.promise) };
    reading.ready.then(
      () => this.log.info({ group: this.group }, 'live.reading'),
      () => {
        // the next one that joins tries again
        if (this.reading === reading) void this.stop();
      },
    );
    return reading;
  }

  /** Ours, where we have read already: Kafka has given us the partitions anew. Else where the store stands. */
  private async positionsOf(partitions: number[]): Promise<Map<number, Position>> {
    const { positions } = this.hub;
    const isNew = (partition: number) => !positions.has(partition);
    if (partitions.some(isNew)) {
      const stored = new Map((await this.store.read()).map(({ partition, offset, clock }) => [partition, { offset, clock }]));
      for (const partition of partitions.filter(isNew)) positions.set(partition, stored.get(partition) ?? { offset: 0, clock: 0 });
    }
    return positions;
  }

  private async handOut(records: LogRecord[]): Promise<void> {
    for (const [index, record] of records.entries()) {
      this.hub.take(record);
      if (index % RECORDS_AT_ONCE === RECORDS_AT_ONCE - 1) await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  const timer = Promise.withResolvers<never>();
  const timeout = setTimeout(() => timer.reject(new Error(`not after ${ms} ms`)), ms);
  try {
    await Promise.race([work, timer.promise]);
  } finally {
    clearTimeout(timeout);
  }
}
