import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { WORKFLOWS_TOPIC } from '#contracts';
import { isTransient } from '#database';
import { Consumes, LogRecord, type Outcome, rejected } from '#messaging';
import { LOG, type Log } from '#observability';
import { readWorkflowRecord } from './workflow-record.js';
import { WorkflowsRepository } from './workflows.repository.js';

/** Workflows run outside Sluice; the compacted topic `workflows` registers them. */
@Controller()
export class WorkflowsController {
  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly workflows: WorkflowsRepository,
  ) {}

  @Consumes({ topic: WORKFLOWS_TOPIC }, 'workflows', { concurrency: 4, maxOutstanding: 500 })
  async changed(@Payload() record: LogRecord): Promise<Outcome | void> {
    const workflow = readWorkflowRecord(record.key, record.value);
    if (typeof workflow === 'string') return rejected(workflow);
    try {
      if ('removed' in workflow) await this.workflows.remove(workflow.id);
      else await this.workflows.put(workflow.id, workflow.ownerId, workflow.name, workflow.active);
    } catch (error) {
      if (isTransient(error)) throw error;
      // the record is the cause of an error of the data
      return rejected((error as Error).message);
    }
    this.log.info({ workflow_id: workflow.id, removed: 'removed' in workflow }, 'workflow.changed');
  }
}
