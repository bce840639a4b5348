import { schemaOf } from '#database';
import { emittersSchema } from '#emitters';
import { outboxSchema } from '#outbox';
import { statsSchema } from '#stats';
import { waitingSchema } from '#waiting-data';
import { Delivered } from '../deliveries/history/delivered.repository.js';
import { Backlog } from '../deliveries/store/backlogs.repository.js';
import { DeletedWebhook, ParkedDelivery } from '../deliveries/store/parked-delivery.entity.js';
import { ReplayRow } from '../replays/replays.repository.js';
import { AutoSubscriptionRow } from '../subscriptions/auto-subscriptions.repository.js';
import { EndedEmitterRow } from '../subscriptions/ended-emitters.repository.js';
import { EndedSubscriptionRow } from '../subscriptions/ended-subscription.entity.js';
import { PostponedEventRow } from '../routes/postponed-events.repository.js';
import { UnknownEventRow } from '../routes/unknown-events.repository.js';
import { SubscriptionRow } from '../subscriptions/subscriptions.repository.js';
import { secretContext } from '../webhooks/signing-secret.js';
import { PreviousSecret, SuspendedAccountRow, WebhookRow } from '../webhooks/webhook.entity.js';
import { CreateRouting1795305600005 } from './migrations/0001-create-routing.js';
import { IndexSubscriptionsOfOwner1795651200000 } from './migrations/0002-index-subscriptions-of-owner.js';
import { IndexReplaysOfEmitter1795737600005 } from './migrations/0003-index-replays-of-emitter.js';
import { KeepPreviousSecrets1795996800000 } from './migrations/0004-keep-previous-secrets.js';
import { GiveUpInBatches1796256000000 } from './migrations/0005-give-up-in-batches.js';
import { SuspendAccounts1796947200000 } from './migrations/0006-suspend-accounts.js';
import { CountWakes1796947200004 } from './migrations/0007-count-wakes.js';
import { PostponeEvents1796947200006 } from './migrations/0008-postpone-events.js';
import { CountWaitingData1796947200008 } from './migrations/0009-count-waiting-data.js';
import { IndexReplaysOfOwner1797033600000 } from './migrations/0010-index-replays-of-owner.js';
import { CountCancelledReplays1797724800000 } from './migrations/0011-count-cancelled-replays.js';
import { NameAccountsOfBacklogs1797811200000 } from './migrations/0012-name-accounts-of-backlogs.js';
import { NoteResumptions1797811200001 } from './migrations/0013-note-resumptions.js';
import { IndexPostponedEventsOfPartition1797811200002 } from './migrations/0014-index-postponed-events-of-partition.js';
import { NoteFailures1797811200003 } from './migrations/0015-note-failures.js';
import { KeepClocksOfReplays1797897600000 } from './migrations/0016-keep-clocks-of-replays.js';
import { KnowSuspendedAccounts1797897600002 } from './migrations/0017-know-suspended-accounts.js';
import { NoteSwitchesOfWebhooks1797897600004 } from './migrations/0018-note-switches-of-webhooks.js';
import { DeleteWebhooksInBatches1797984000010 } from './migrations/0019-delete-webhooks-in-batches.js';
import { EndSubscriptions1798646400001 } from './migrations/0020-end-subscriptions.js';
import { ListEndedEmitters1798819200001 } from './migrations/0021-list-ended-emitters.js';
import { IndexRunningReplays1798819200011 } from './migrations/0022-index-running-replays.js';
import { NoteTimesOfDelivered1798905600001 } from './migrations/0023-note-times-of-delivered.js';
import { TimeRunsOfReplays1799078400041 } from './migrations/0024-time-runs-of-replays.js';
import { StoreUnknownEvents1799078400042 } from './migrations/0025-store-unknown-events.js';
import { KeepTimesOfSchedules1799078400043 } from './migrations/0026-keep-times-of-schedules.js';
import { IndexFreshDeliveriesOfEmitters1799164800003 } from './migrations/0027-index-fresh-deliveries-of-emitters.js';
import { KeepEndedSubscriptions1799251200002 } from './migrations/0028-keep-ended-subscriptions.js';
import { IndexEndsOfSubscriptions1799251200003 } from './migrations/0029-index-ends-of-subscriptions.js';
import { IndexPostponedEventsOfUnknownEmitters1799078400000 } from './migrations/0030-drop-index-of-unknown-emitters.js';

export const schema = schemaOf('routing', outboxSchema, emittersSchema, statsSchema, waitingSchema, {
  entities: [
    WebhookRow,
    PreviousSecret,
    SuspendedAccountRow,
    SubscriptionRow,
    AutoSubscriptionRow,
    EndedEmitterRow,
    EndedSubscriptionRow,
    ParkedDelivery,
    DeletedWebhook,
    Backlog,
    Delivered,
    ReplayRow,
    PostponedEventRow,
    UnknownEventRow,
  ],
  // in this order: a rotation moves a secret from the first table to the second
  sealed: [
    { table: 'webhook', key: ['id'], column: 'secret', context: secretContext },
    { table: 'previous_secret', key: ['webhook_id', 'rotation_id'], column: 'secret', context: secretContext },
  ],
  migrations: [
    CreateRouting1795305600005,
    IndexSubscriptionsOfOwner1795651200000,
    IndexReplaysOfEmitter1795737600005,
    KeepPreviousSecrets1795996800000,
    GiveUpInBatches1796256000000,
    SuspendAccounts1796947200000,
    CountWakes1796947200004,
    PostponeEvents1796947200006,
    CountWaitingData1796947200008,
    IndexReplaysOfOwner1797033600000,
    CountCancelledReplays1797724800000,
    NameAccountsOfBacklogs1797811200000,
    NoteResumptions1797811200001,
    IndexPostponedEventsOfPartition1797811200002,
    NoteFailures1797811200003,
    KeepClocksOfReplays1797897600000,
    KnowSuspendedAccounts1797897600002,
    NoteSwitchesOfWebhooks1797897600004,
    DeleteWebhooksInBatches1797984000010,
    EndSubscriptions1798646400001,
    ListEndedEmitters1798819200001,
    IndexRunningReplays1798819200011,
    NoteTimesOfDelivered1798905600001,
    TimeRunsOfReplays1799078400041,
    StoreUnknownEvents1799078400042,
    KeepTimesOfSchedules1799078400043,
    IndexFreshDeliveriesOfEmitters1799164800003,
    KeepEndedSubscriptions1799251200002,
    IndexEndsOfSubscriptions1799251200003,
    IndexPostponedEventsOfUnknownEmitters1799078400000,
  ],
});
