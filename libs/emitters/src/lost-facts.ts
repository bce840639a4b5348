import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { emitterChanged } from '#contracts';
import { Consumers } from '#messaging';
import { LOG, type Log } from '#observability';
import { afterLossOf } from '#service';
import { EmitterDirectory } from './directory.js';

/** When Kafka has lost the facts about emitters, the app learns all states from the catalog: otherwise a source that was deleted could run forever. */
@Injectable()
export class LostFacts implements OnModuleInit, OnApplicationShutdown {
  private stop: () => void = () => {};

  constructor(
    private readonly consumers: Consumers,
    private readonly directory: EmitterDirectory,
    @Inject(LOG) private readonly log: Log,
  ) {}

  onModuleInit(): void {
    this.stop = afterLossOf(emitterChanged.topic, { consumers: this.consumers, log: this.log }, async () => ({
      emitters: await this.directory.learnAll(),
    }));
  }

  onApplicationShutdown(): void {
    this.stop();
  }
}
