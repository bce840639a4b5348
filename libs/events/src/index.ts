export * from './cloud-event.js';
export {
  deletedBy,
  type DeletedRange,
  deletionRecord,
  type DeletionSigner,
  isDeletion,
  isInRange,
  mergedSpans,
  type Span,
} from './deletions.js';
export * from './error-event.js';
export * from './event-id.js';
export * from './event-limits.js';
export * from './event-record.js';
export * from './event-summary.js';
export * from './run-id.js';
export * from './streams.js';
export * from './structured-event.js';
export * from './subscription-problems.js';
export { checkJson, NotJson, TooMuchJson, withoutBom } from './json-text.js';
