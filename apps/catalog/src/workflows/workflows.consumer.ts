import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { WORKFLOWS_TOPIC } from '#contracts';
import { isTransient } from '#database';
import { KAFKA, type KafkaClient, LaneConsumer, type LogRecord, Publisher, sendToDeadLetter } from '#messaging';
import { LOG, type Log } from '#observability';
import { readWorkflowRecord } from './workflow-record.js';
import { WorkflowsRepository } from './workflows.repository.js';

/** The way in for workflows: they run elsewhere, and the compacted topic `workflows` is how they come to exist for us. */
@Injectable()
export class WorkflowsConsumer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly consumer: LaneConsumer;

  constructor(
    @Inject(KAFKA) kafka: KafkaClient,
    @Inject(LOG) private readonly log: Log,
    private readonly workflows: WorkflowsRepository,
    private readonly publisher: Publisher,
  ) {
    this.consumer = new LaneConsumer(kafka, log, {
      group: 'catalog.workflows',
      topics: [WORKFLOWS_TOPIC],
      concurrency: 4,
      maxOutstanding: 500,
      plan: (records) => records.map((record) => [{ lane: record.key ?? '', run: () => this.take(record) }]),
    });
  }

  onApplicationBootstrap(): Promise<void> {
    return this.consumer.start();
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.consumer.stop();
  }

  private async take(record: LogRecord): Promise<void> {
    const workflow = readWorkflowRecord(record.key, record.value);
    if (typeof workflow === 'string') return this.refuse(record, workflow);
    try {
      if ('removed' in workflow) await this.workflows.remove(workflow.id);
      else await this.workflows.put(workflow.id, workflow.ownerId, workflow.name, workflow.active);
      this.log.info({ workflow_id: workflow.id, removed: 'removed' in workflow }, 'workflow.changed');
    } catch (error) {
      // the lane runs the task again
      if (isTransient(error)) throw error;
      return this.refuse(record, (error as Error).message);
    }
  }

  private async refuse(record: LogRecord, reason: string): Promise<void> {
    this.log.warn({ partition: record.partition, offset: record.offset, reason }, 'workflow.refused');
    await sendToDeadLetter(this.publisher, 'catalog', record, reason);
  }
}
