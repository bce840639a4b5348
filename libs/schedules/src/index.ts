export { CRON_LENGTH, nextCron } from './cron.js';
