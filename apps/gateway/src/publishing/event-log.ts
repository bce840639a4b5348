import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { EVENTS_TOPIC, TooManyRequests, Unavailable, type UserId } from '#contracts';
import type { EventToProduce } from '#events';
import { LOG, type Log } from '#observability';
import { KafkaClient, Publisher, SEND_WITHIN_MS } from '#messaging';

/** The topic `events`, with a separate producer, so that events and requests to other services never wait for each other. */
@Injectable()
export class EventLog implements OnModuleInit, OnApplicationShutdown {
  private readonly publisher: Publisher;

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
   * Resolves when all in-sync replicas have every event. Throws Unavailable if they do not within five seconds, and at once while too many events wait;
   * in the first case, some of the events may be in the log or arrive there later. Throws TooManyRequests while too many of the account wait. Those of one
   * account keep their order. once: a single record is not written a second time if Kafka's response is lost.
   */
  async append(ownerId: UserId, events: EventToProduce[], { once }: { once?: boolean } = {}): Promise<void> {
    const records = events.map((event) => ({ topic: EVENTS_TOPIC, ...event }));
    try {
      await this.publisher.send(records, { withinMs: SEND_WITHIN_MS, account: ownerId, once });
    } catch (error) {
      if (error instanceof TooManyRequests) throw error;
      const bytes = events.reduce((sum, { value }) => sum + value.length, 0);
      this.log.warn({ events: events.length, bytes, err: error }, 'events.not-published');
      throw new Unavailable('Kafka does not take events', 'the message log does not accept events');
    }
  }
}
