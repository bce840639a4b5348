export {
  type AccountRecord,
  addedToOutbox,
  addToOutbox,
  OutboxRecord,
  OUTBOX_GATHER_MS,
  OutboxRelay,
  outboxRows,
  outboxSchema,
  outboxValues,
  WAKE_RELAY,
} from './outbox.js';
