import { type DynamicModule, Module } from '@nestjs/common';
import { Consumers } from './consumers.js';
import { KafkaClient } from './kafka.js';
import { Messages } from './messages.js';
import { Publisher } from './publisher.js';

/** Kafka, the publisher and `Messages` for the whole app: connected before the app's modules start, closed after they stop. */
@Module({})
export class MessagingModule {
  static with(instances: { kafka: KafkaClient; publisher: Publisher; messages: Messages; consumers: Consumers }): DynamicModule {
    return {
      module: MessagingModule,
      global: true,
      providers: [
        { provide: KafkaClient, useValue: instances.kafka },
        { provide: Publisher, useValue: instances.publisher },
        { provide: Messages, useValue: instances.messages },
        { provide: Consumers, useValue: instances.consumers },
      ],
      exports: [KafkaClient, Publisher, Messages, Consumers],
    };
  }
}
