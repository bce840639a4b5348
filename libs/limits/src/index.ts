export { CallerGone, FairSlots, TooMuchWaiting } from './fair-slots.js';
export { LimitPerKey } from './limit-per-key.js';
export { type Place, QueuePerKey } from './queue-per-key.js';
export { SharedWork } from './shared-work.js';
export { Slots } from './slots.js';
export { SumPerKey } from './sum-per-key.js';
