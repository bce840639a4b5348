export { addToOutbox, OutboxRecord, outboxSchema } from './outbox.js';
export { OutboxRelay } from './relay.js';
