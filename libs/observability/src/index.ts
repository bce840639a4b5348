export { createLog, LOG, LOG_LEVELS, type Log } from './log.js';
export { collectProcessMetrics, counter, gauge, histogram, metrics } from './metrics.js';
export { NestLog } from './nest-log.js';
export { currentRequestId, withRequestId } from './request-context.js';
