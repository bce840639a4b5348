import { Inject, Injectable } from '@nestjs/common';
import { kafkaName, WORKFLOWS_TOPIC } from '#contracts';
import { LogProgress, type Offsets } from '#log-progress';
import { KafkaClient } from '#messaging';
import { LOG, type Log } from '#observability';

/** The consumer group of the topic `workflows`. */
export const WORKFLOWS_GROUP = 'workflows';

/** How far the catalog has read the topic `workflows`: until then, it does not know the workflows that were registered. */
@Injectable()
export class WorkflowsProgress extends LogProgress {
  constructor(kafka: KafkaClient, @Inject(LOG) log: Log) {
    super(kafka, log, WORKFLOWS_TOPIC, 'the catalog');
  }

  protected override async readTo(): Promise<Offsets> {
    const request = { groupId: kafkaName(`catalog.${WORKFLOWS_GROUP}`), topics: [WORKFLOWS_TOPIC] };
    const response = await this.ask((admin) => admin.fetchOffsets(request));
    // -1: nothing was committed
    return new Map(
      response.flatMap(({ partitions }) => partitions.map(({ partition, offset }) => [partition, Math.max(0, Number(offset))])),
    );
  }
}
