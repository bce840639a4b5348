export { LimitPerKey } from './limit-per-key.js';
export { type Place, QueuePerKey } from './queue-per-key.js';
