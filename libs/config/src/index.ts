export { ConfigError, Environment, readConfig } from './environment.js';
export { type DailyQuotas, readQuotas } from './quotas.js';
