export { createLog, LOG, type Log } from './log.js';
export { collectProcessMetrics, counter, gauge, histogram, metrics } from './metrics.js';
export { NestLog } from './nest-log.js';
export { currentRequestId, withRequestId } from './request-context.js';
