import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { EVENTS_TOPIC, Unavailable } from '#contracts';
import type { EventToProduce } from '#events';
import { LOG, type Log } from '#observability';
import { KafkaClient, Publisher, shares } from '#messaging';

/** A broker that does not acknowledge events within this time counts as unavailable. */
const WITHIN_MS = 5000;
/** The most that may wait for the broker, to bound the memory. */
const MOST_WAITING_BYTES = 64 * 1024 * 1024;

/** The topic `events`, with a separate producer, so that events and requests to other services never wait for each other. */
@Injectable()
export class EventLog implements OnModuleInit, OnApplicationShutdown {
  private readonly publisher: Publisher;
  private waitingBytes = 0;

  constructor(
    kafka: KafkaClient,
    @Inject(LOG) private readonly log: Log,
  ) {
    this.publisher = new Publisher(kafka);
  }

  onModuleInit(): Promise<void> {
    return this.publisher.connect();
  }

  onApplicationShutdown(): Promise<void> {
    return this.publisher.close();
  }

  /**
   * Resolves when all in-sync replicas have every event. Throws Unavailable if they do not within five seconds; some of the events may
   * still be in the log then, or arrive there later.
   */
  async append(events: EventToProduce[]): Promise<void> {
    const bytes = events.reduce((sum, { value }) => sum + value.length, 0);
    if (this.waitingBytes + bytes > MOST_WAITING_BYTES) throw new Unavailable('too many events wait for Kafka');
    this.waitingBytes += bytes;
    try {
      const records = events.map((event) => ({ topic: EVENTS_TOPIC, ...event }));
      await Promise.all(shares(records).map((share) => this.publisher.send(share, { withinMs: WITHIN_MS })));
    } catch (error) {
      this.log.warn({ events: events.length, bytes, err: error }, 'events.not-published');
      throw new Unavailable('Kafka does not take events', 'the message log does not accept events');
    } finally {
      this.waitingBytes -= bytes;
    }
  }
}
