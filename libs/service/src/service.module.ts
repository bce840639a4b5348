import { type DynamicModule, Module } from '@nestjs/common';
import { Consumers, KafkaClient, Messages, Publisher } from '#messaging';
import { LOG, type Log } from '#observability';
import { SecretBox } from '#secrets';
import { DatabaseRestores } from './database-restores.js';

/** The instances that every provider of a service can inject. */
export interface Shared {
  log: Log;
  /** The keys for secrets. */
  box: SecretBox;
  kafka: KafkaClient;
  publisher: Publisher;
  messages: Messages;
  consumers: Consumers;
  restores: DatabaseRestores;
}

/** The service's log, its keys and its connections to Kafka: connected before the app's modules start, closed after they stop. */
@Module({})
export class ServiceModule {
  static with({ log, box, kafka, publisher, messages, consumers, restores }: Shared): DynamicModule {
    return {
      module: ServiceModule,
      global: true,
      providers: [
        { provide: LOG, useValue: log },
        { provide: SecretBox, useValue: box },
        { provide: KafkaClient, useValue: kafka },
        { provide: Publisher, useValue: publisher },
        { provide: Messages, useValue: messages },
        { provide: Consumers, useValue: consumers },
        { provide: DatabaseRestores, useValue: restores },
      ],
      exports: [LOG, SecretBox, KafkaClient, Publisher, Messages, Consumers, DatabaseRestores],
    };
  }
}
