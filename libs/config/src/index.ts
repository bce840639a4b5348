export { checkConfig, Config, type ConfigClass, ConfigError } from './config.js';
export { endpointLabel, endpointsUrlOf, endpointUrl, endpointVariables, hasOwnHosts } from './endpoints.js';
export { type DailyQuotas, quotasOf, quotaVariables, secondsToReset } from './quotas.js';
export { BadValue, boolean, choice, duration, durations, integer, optional, port, text, timeout, variable } from './variable.js';
export { databaseUrlOf, storeVariables } from './stores.js';
