export { addToOutbox } from './outbox.js';
export { OutboxRelay } from './relay.js';
