import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { emitterChanged } from '#contracts';
import { Consumers } from '#messaging';
import { LOG, type Log } from '#observability';
import { EmitterDirectory } from './directory.js';

const RETRY_MS = 1000;

/** When Kafka has lost the facts about emitters, the service learns all states from the catalog: otherwise a source that was deleted could run forever. */
@Injectable()
export class LostFacts implements OnModuleInit, OnApplicationShutdown {
  private learning = false;
  private stopping = false;

  constructor(
    private readonly consumers: Consumers,
    private readonly directory: EmitterDirectory,
    @Inject(LOG) private readonly log: Log,
  ) {}

  onModuleInit(): void {
    this.consumers.onReplaced((topic) => {
      if (topic === emitterChanged.topic) void this.learnAll();
    });
  }

  onApplicationShutdown(): void {
    this.stopping = true;
  }

  private async learnAll(): Promise<void> {
    // Kafka loses all partitions at the same time, and they are recognised one by one
    if (this.learning) return;
    this.learning = true;
    while (!this.stopping) {
      try {
        this.log.warn({ changed: await this.directory.learnAll() }, 'emitters.learnt-again');
        break;
      } catch (error) {
        if (!this.stopping) this.log.error({ reason: (error as Error).message }, 'emitters.not-learnt');
        await sleep(RETRY_MS, undefined, { ref: false });
      }
    }
    this.learning = false;
  }
}
