export {
  type AccountRecord,
  addedToOutbox,
  addToOutbox,
  outboxColumns,
  OutboxRecord,
  OutboxRelay,
  outboxSchema,
  WAKE_RELAY,
} from './outbox.js';
