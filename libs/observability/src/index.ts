export { createLog, currentRequestId, LOG, LOG_LEVELS, type Log, withRequestId } from './log.js';
export { collectProcessMetrics, counter, gauge, histogram, metrics } from './metrics.js';
export { NestLog } from './nest-log.js';
