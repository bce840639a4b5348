import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { EVENTS_TOPIC } from '#contracts';
import { KAFKA, type KafkaClient, LogConsumer } from '#messaging';
import { LOG, type Log } from '#observability';
import { AppendRepository } from './append.repository.js';
import { EventIntake } from './event-intake.js';

/** What a reader of the store waits for an event at most, so that a steady trickle costs fewer transactions. */
const GATHER_MS = 20;

/** Reads the topic `events`, from where the store stands. */
@Injectable()
export class EventLog implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly consumer: LogConsumer;

  constructor(@Inject(KAFKA) kafka: KafkaClient, @Inject(LOG) log: Log, events: AppendRepository, intake: EventIntake) {
    this.consumer = new LogConsumer(kafka, log, {
      group: 'event-store.events',
      topic: EVENTS_TOPIC,
      gatherMs: GATHER_MS,
      positions: (partitions) => events.positions(partitions),
      handle: (partition, records, before, after) => intake.take(partition, records, before, after),
    });
  }

  onApplicationBootstrap(): Promise<void> {
    return this.consumer.start();
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.consumer.stop();
  }
}
