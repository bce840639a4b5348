import { Inject, Injectable } from '@nestjs/common';
import { Unavailable } from '#contracts';
import { Consumers, type LogRecord, type Position } from '#messaging';
import { LOG, type Log } from '#observability';
import { within } from '#service';
import { GatewayConfig } from '../gateway.config.js';
import { LiveConfig } from './live.config.js';
import { LiveHub, type LiveListener, type Seam } from './live-hub.js';
import { StorePositions } from './store-positions.js';

/** The consumer group for live streams. */
export const LIVE_GROUP = 'live';

const READY_WITHIN_MS = 10_000;
/** Yields to the sockets after this many records. Otherwise a burst would pile up in memory even though its clients could keep up. */
const RECORDS_AT_ONCE = 50;
/** Yields after fewer records if they have this many subscribers together: to pass them on takes about a millisecond. */
const SUBSCRIBERS_AT_ONCE = 500;

interface Reading {
  started: Promise<void>;
  /** Whether the starting positions are known. */
  known(): void;
  /** Ends the wait of those who are joining. */
  abandon(): void;
  /** Resolves when it reads and its starting positions are known. */
  ready: Promise<void>;
}

/**
 * Reads the topic `events` for the clients of this process, only while there are any. Each process reads all partitions. It starts at the positions
 * of the store, with the store's clocks, because event ids depend on them.
 *
 *   idle ── the first joins ──► reading ── the last has left, and a delay has passed ──► idle
 */
@Injectable()
export class LiveReader {
  private readonly hub: LiveHub;
  private users = 0;
  private reading: Reading | undefined;
  private stopped: Promise<void> = Promise.resolve();
  private idleTimer: NodeJS.Timeout | undefined;

  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly consumers: Consumers,
    private readonly store: StorePositions,
    private readonly config: LiveConfig,
    { maxEventBytes }: GatewayConfig,
  ) {
    this.hub = new LiveHub({ maxEventBytes });
  }

  /** Passes the subscriber all events from the returned seam on, until it leaves. Throws Unavailable if the log cannot be read. */
  async join(listener: LiveListener): Promise<Seam> {
    this.users += 1;
    clearTimeout(this.idleTimer);
    try {
      await within(READY_WITHIN_MS, (this.reading ??= this.start()).ready, () => new Unavailable(`not after ${READY_WITHIN_MS} ms`));
    } catch (error) {
      this.leave(listener);
      this.log.warn({ err: error }, 'live.not-reading');
      throw new Unavailable('events cannot be read from Kafka');
    }
    return this.hub.join(listener);
  }

  /** Call it once for each `join`. After the last one has left, the log is read for a while longer, for clients that reconnect. */
  leave(listener: LiveListener): void {
    this.hub.leave(listener);
    this.users -= 1;
    if (this.users === 0) this.idleTimer = setTimeout(() => void this.stop(), this.config.lingerMs).unref();
  }

  /** Stops reading; a later `join` starts it again. */
  stop(): Promise<void> {
    clearTimeout(this.idleTimer);
    const { reading } = this;
    this.reading = undefined;
    if (reading) {
      reading.abandon();
      this.stopped = reading.started
        .catch(() => {})
        .then(() => this.consumers.stop(LIVE_GROUP))
        .catch((error: Error) => this.log.warn({ err: error }, 'live.not-stopped'))
        .then(() => this.hub.reset());
      this.log.info('live.idle');
    }
    return this.stopped;
  }

  /**
   * The starting offsets of the partitions: where reading stopped, if Kafka reassigns them, otherwise the positions of the store. One that the topic gets
   * while it is read is read from its beginning: the store may be ahead, and nobody has seen what it has stored.
   */
  async positions(partitions: number[]): Promise<Map<number, Position>> {
    // if reading stops meanwhile, the next one needs others
    const { reading } = this;
    const { positions } = this.hub;
    const added = partitions.filter((partition) => !positions.has(partition));
    const known = new Map(
      positions.size > 0 || added.length === 0 ? [] : (await this.store.read()).map(({ partition, ...position }) => [partition, position]),
    );
    for (const partition of added) positions.set(partition, known.get(partition) ?? { offset: 0, clock: 0 });
    reading?.known();
    return positions;
  }

  async handOut(records: LogRecord[], before: Position): Promise<void> {
    const [first] = records;
    if (first && first.offset < before.offset) this.hub.restart(first.partition);
    let subscribers = 0;
    for (const [index, record] of records.entries()) {
      subscribers += this.hub.take(record);
      if (subscribers < SUBSCRIBERS_AT_ONCE && index % RECORDS_AT_ONCE !== RECORDS_AT_ONCE - 1) continue;
      subscribers = 0;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  private start(): Reading {
    const known = Promise.withResolvers<void>();
    const started = this.stopped.then(() => this.consumers.start(LIVE_GROUP));
    const reading: Reading = {
      started,
      known: () => known.resolve(),
      abandon: () => known.reject(new Error('reading has stopped')),
      ready: Promise.all([started, known.promise]).then(() => {}),
    };
    reading.ready.then(
      () => this.log.info('live.reading'),
      () => {
        // the next `join` retries
        if (this.reading === reading) void this.stop();
      },
    );
    return reading;
  }
}
