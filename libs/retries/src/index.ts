export { JITTER, type Random, retryPause, retrySchedule } from './retry-schedule.js';
