export { LimitedWarnings } from './limited-warnings.js';
export { createLog, currentRequestId, LOG, type Log, LOG_LEVELS, NestLog, withRequestId } from './log.js';
export { MainThreadClock, type MainThreadTimes } from './main-thread-clock.js';
export { collectProcessMetrics, counter, gauge, histogram, metrics } from './metrics.js';
