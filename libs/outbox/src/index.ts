export {
  type AccountRecord,
  addedToOutbox,
  addToOutbox,
  OUTBOX_GATHER_MS,
  OutboxRelay,
  outboxRows,
  outboxValues,
  WAKE_RELAY,
} from './outbox.js';
export { OutboxRecord, outboxSchema } from './outbox-record.entity.js';
