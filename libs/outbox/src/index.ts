export {
  type AccountRecord,
  addedToOutbox,
  addToOutbox,
  OutboxRecord,
  OutboxRelay,
  outboxRows,
  outboxSchema,
  outboxValues,
  WAKE_RELAY,
} from './outbox.js';
