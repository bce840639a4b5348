import { isUtf8 } from 'node:buffer';
import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { isId, SOURCE_NAME_LENGTH, type UserId, type WorkflowId, WORKFLOWS_TOPIC } from '#contracts';
import { isTransient } from '#database';
import { Consumes, LogRecord, type Outcome, rejected } from '#messaging';
import { LOG, type Log } from '#observability';
import { WORKFLOWS_GROUP } from './workflows-progress.js';
import { WorkflowsRepository } from './workflows.repository.js';

/** Its events, subscriptions and logs would become those of another account. */
const ANOTHERS = 'the workflow has another owner, also if it was removed: register it under a new id';

/** Workflows run outside Sluice; the compacted topic `workflows` registers them. */
@Controller()
export class WorkflowsController {
  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly workflows: WorkflowsRepository,
  ) {}

  @Consumes({ topic: WORKFLOWS_TOPIC }, WORKFLOWS_GROUP, { concurrency: 4, maxOutstanding: 500 })
  async changed(@Payload() record: LogRecord): Promise<Outcome | void> {
    const workflow = readWorkflowRecord(record.key, record.value);
    if (typeof workflow === 'string') return rejected(workflow);
    try {
      // by the clock of its producer, unless that is ahead
      if ('removed' in workflow) await this.workflows.remove(workflow.id, Math.min(record.timestamp, Date.now()));
      else if (!(await this.workflows.put(workflow.id, workflow.ownerId, workflow.name, workflow.active))) return rejected(ANOTHERS);
    } catch (error) {
      if (isTransient(error)) throw error;
      // the record is the cause of an error of the data
      return rejected((error as Error).message);
    }
    this.log.info({ workflow_id: workflow.id, removed: 'removed' in workflow }, 'workflow.changed');
  }
}

/** The content of a record of the topic `workflows`, or a sentence with the reason why it is invalid. */
type WorkflowRecord = { id: WorkflowId; ownerId: UserId; name: string; active: boolean } | { id: WorkflowId; removed: true } | string;

/** Shape of the value: `{id: "p_…", owner_id: "u_…", name, active}`; null removes. The key is the workflow's id. */
export function readWorkflowRecord(key: string | null, value: Buffer | null): WorkflowRecord {
  if (!isId('workflow', key)) return 'the key is not the id of a workflow';
  if (value === null || value.length === 0) return { id: key, removed: true };
  if (!isUtf8(value)) return 'the value is not UTF-8';
  let parsed: unknown;
  try {
    parsed = JSON.parse(value.toString('utf8'));
  } catch (error) {
    return `the value is not JSON: ${(error as Error).message}`;
  }
  if (parsed === null || typeof parsed !== 'object') return 'the value is not an object';
  const { id, owner_id, name, active } = parsed as Record<string, unknown>;
  if (id !== undefined && id !== key) return 'the id in the value is not the key';
  if (!isId('user', owner_id)) return 'owner_id is not the id of an account';
  if (name !== undefined && name !== null && typeof name !== 'string') return 'name is not a string';
  if (active !== undefined && typeof active !== 'boolean') return 'active is not true or false';
  return { id: key, ownerId: owner_id, name: cut(name ?? ''), active: active ?? true };
}

/** A workflow whose name is a whole description is registered, but the states of hundreds must fit into a message. */
const cut = (name: string): string =>
  name.length <= SOURCE_NAME_LENGTH ? name : [...name.slice(0, 2 * SOURCE_NAME_LENGTH)].slice(0, SOURCE_NAME_LENGTH).join('');
