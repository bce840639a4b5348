export { addedToOutbox, addToOutbox, outboxColumns, OutboxRecord, outboxSchema, WAKE_RELAY } from './outbox.js';
export { OutboxRelay } from './relay.js';
