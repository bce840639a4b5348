export { LimitPerKey } from './limit-per-key.js';
export { type Place, QueuePerKey } from './queue-per-key.js';
export { SharedWork } from './shared-work.js';
export { SumPerKey } from './sum-per-key.js';
