export { closeIdleConnections, dropUnreadBody, letClientsLeave } from './http-connections.js';
export { COMMON_SETTINGS, runService, type ServiceOptions } from './run-service.js';
export { LimitPerKey } from './limit-per-key.js';
export { type OpenCommand, runCommand } from './command-line.js';
export { CannotStart, explain, logFatal } from './explain.js';
export { ProtectedBrokersModule } from './protected-brokers.js';
export { ServiceConfig } from './service.config.js';
export { ServiceModule, type Shared } from './service.module.js';
export { retryUntilStoresRespond } from './stores.js';
