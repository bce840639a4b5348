import { propsContext } from '#contracts';
import { schemaOf } from '#database';
import { emittersSchema } from '#emitters';
import { outboxSchema } from '#outbox';
import { statsSchema } from '#stats';
import { waitingSchema } from '#waiting-data';
import { DeploymentRow, TimerRow } from '../deployments/deployment.entity.js';
import { QuotaNotice, UsageRow } from '../quotas/quotas.repository.js';
import { QueuedRun, QueueLease } from '../queue/queued-runs.repository.js';
import { FinishedRunRow, RunDone } from '../runs/run.entity.js';
import { RetriedRun } from '../retries/retried-runs.repository.js';
import { SourceDb, SourceDedupe } from '../source-state/source-state.repository.js';
import { WaitingEmit } from '../waiting/waiting-emits.repository.js';
import { CreateRuntime1795305600004 } from './migrations/0001-create-runtime.js';
import { CreateRetriedRun1795564800000 } from './migrations/0002-create-retried-run.js';
import { IndexDeploymentsOfOwner1795737600004 } from './migrations/0003-index-deployments-of-owner.js';
import { NameRunsOfTimers1796256000001 } from './migrations/0004-name-runs-of-timers.js';
import { NameAccountsOfWaitingEmits1796860800001 } from './migrations/0005-name-accounts-of-waiting-emits.js';
import { NameAccountsOfRetriedRuns1796860800002 } from './migrations/0006-name-accounts-of-retried-runs.js';
import { SuspendAccounts1796947200001 } from './migrations/0007-suspend-accounts.js';
import { CountWaitingData1796947200009 } from './migrations/0008-count-waiting-data.js';
import { RunsAtATime1796947200010 } from './migrations/0009-runs-at-a-time.js';
import { HoldQueuedRuns1796947200011 } from './migrations/0010-hold-queued-runs.js';
import { WaitingSince1796947200012 } from './migrations/0011-waiting-since.js';
import { RequestedAttempts1796947200013 } from './migrations/0012-requested-attempts.js';
import { NameAccountsOfTimers1798732800020 } from './migrations/0013-name-accounts-of-timers.js';
import { IndexQueuedHooks1798732800021 } from './migrations/0014-index-queued-hooks.js';
import { StoreHeadersOfEmitsUncompressed1798992000004 } from './migrations/0015-store-headers-uncompressed.js';
import { CountHeadersOfEmits1798992000005 } from './migrations/0016-count-headers-of-emits.js';
import { NoteWhenTimersAreSet1798992000006 } from './migrations/0017-note-when-timers-are-set.js';

export const schema = schemaOf('runtime', outboxSchema, emittersSchema, statsSchema, waitingSchema, {
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
  migrations: [
    CreateRuntime1795305600004,
    CreateRetriedRun1795564800000,
    IndexDeploymentsOfOwner1795737600004,
    NameRunsOfTimers1796256000001,
    NameAccountsOfWaitingEmits1796860800001,
    NameAccountsOfRetriedRuns1796860800002,
    SuspendAccounts1796947200001,
    CountWaitingData1796947200009,
    RunsAtATime1796947200010,
    HoldQueuedRuns1796947200011,
    WaitingSince1796947200012,
    RequestedAttempts1796947200013,
    NameAccountsOfTimers1798732800020,
    IndexQueuedHooks1798732800021,
    StoreHeadersOfEmitsUncompressed1798992000004,
    CountHeadersOfEmits1798992000005,
    NoteWhenTimersAreSet1798992000006,
  ],
});
