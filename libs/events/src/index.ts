export * from './cloud-event.js';
export { coversPlace, type DeletedRange, deletionRecord, isDeleted } from './deletions.js';
export * from './error-event.js';
export * from './event-id.js';
export * from './event-limits.js';
export * from './event-record.js';
export * from './event-summary.js';
export * from './streams.js';
