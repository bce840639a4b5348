export { ConfigError, Environment, readConfig } from './environment.js';
