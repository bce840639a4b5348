export { CRON_LENGTH, MAX_TIMERS, nextCron } from './cron.js';
