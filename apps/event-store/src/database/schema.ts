import { schemaOf } from '#database';
import { emittersSchema } from '#emitters';
import { DeletedRangeRow, EventProgress, EventRow, WithdrawnEmitRow } from '../append/event-store.entity.js';
import { CreateEventStore1795305600006 } from './migrations/0001-create-event-store.js';
import { IdentifyLogs1795305600007 } from './migrations/0002-identify-logs.js';
import { IndexWithdrawals1798243200003 } from './migrations/0003-index-withdrawals.js';

export const schema = schemaOf('event-store', emittersSchema, {
  entities: [EventRow, EventProgress, DeletedRangeRow, WithdrawnEmitRow],
  migrations: [CreateEventStore1795305600006, IdentifyLogs1795305600007, IndexWithdrawals1798243200003],
});
