export { JITTER, jittered, type Random, retryPause, retrySchedule } from './retry-schedule.js';
