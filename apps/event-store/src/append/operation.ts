import type { DeletedRange, EmittedEvent } from '#events';

/** What the log tells the store to do. */
export type Operation = EmittedEvent | DeletedRange;
