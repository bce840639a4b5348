import type { DeletedRange, EmittedEvent } from '#contracts';

/** What the log tells the store to do. */
export type Operation = EmittedEvent | DeletedRange;

/** How many events of a stream of an emitter are kept: the newest. */
export const KEPT = 100;
