import { propsContext } from '#contracts';
import { schemaOf } from '#database';
import { emittersSchema } from '#emitters';
import { outboxSchema } from '#outbox';
import { statsSchema } from '#stats';
import { DeploymentRow } from '../deployments/deployment.entity.js';
import { QuotaNotice, UsageRow } from '../quotas/quota.entity.js';
import { QueuedRun, QueueLease } from '../queue/queued-run.entity.js';
import { FinishedRunRow } from '../runs/finished-run.entity.js';
import { RunDone } from '../runs/run-done.entity.js';
import { RetriedRun } from '../retries/retried-run.entity.js';
import { SourceDb, SourceDedupe } from '../source-state/source-state.entity.js';
import { TimerRow } from '../deployments/timer.entity.js';
import { WaitingEmit } from '../waiting/waiting-emit.entity.js';
import { CreateRuntime1795305600004 } from './migrations/0001-create-runtime.js';
import { CreateRetriedRun1795564800000 } from './migrations/0002-create-retried-run.js';

export const schema = schemaOf('runtime', outboxSchema, emittersSchema, statsSchema, {
  entities: [
    DeploymentRow,
    TimerRow,
    SourceDb,
    SourceDedupe,
    RunDone,
    FinishedRunRow,
    WaitingEmit,
    QueuedRun,
    QueueLease,
    RetriedRun,
    UsageRow,
    QuotaNotice,
  ],
  sealed: [{ table: 'deployment', key: ['source_id'], column: 'configured_props', json: true, context: propsContext }],
  migrations: [CreateRuntime1795305600004, CreateRetriedRun1795564800000],
});
