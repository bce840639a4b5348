import { Inject, Injectable } from '@nestjs/common';
import { EVENTS_TOPIC } from '#contracts';
import { LogProgress, type Offsets } from '#log-progress';
import { KafkaClient } from '#messaging';
import { LOG, type Log } from '#observability';
import { AppendRepository } from './append.repository.js';

/** How far the store has read the log: until then, it does not know the deletions that were acknowledged. */
@Injectable()
export class StoreProgress extends LogProgress {
  constructor(
    kafka: KafkaClient,
    @Inject(LOG) log: Log,
    private readonly events: AppendRepository,
  ) {
    super(kafka, log, EVENTS_TOPIC, 'the event store');
  }

  protected override async readTo(): Promise<Offsets> {
    return new Map((await this.events.storedPositions()).map(({ partition, offset }) => [partition, offset]));
  }
}
