export { OutboxRecord } from './outbox.entity.js';
export { addToOutbox } from './outbox.js';
export { outboxSchema } from './outbox.schema.js';
export { OutboxRelay } from './relay.js';
