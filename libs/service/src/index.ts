export { BodyBuffer, BytesPerKey } from './body-buffer.js';
export { limitConnections } from './connection-limits.js';
export {
  CHECK_CONNECTIONS_MS,
  closeIdleConnections,
  closeUnreadConnections,
  closeOf,
  dropUnreadBody,
  hasSeveralHosts,
  HEADERS_MS,
  letClientsLeave,
  lingerUntilClosed,
  requestTarget,
} from './http-connections.js';
export { COMMON_SETTINGS, runService, type ServiceOptions } from './run-service.js';
export { LimitPerKey } from './limit-per-key.js';
export { type Place, QueuePerKey } from './queue-per-key.js';
export { handleInOrder } from './requests-in-order.js';
export { type OpenCommand, runCommand, WRONG_USAGE } from './command-line.js';
export { DatabaseRestores } from './database-restores.js';
export { CannotStart, explain, logFatal } from './explain.js';
export { printable } from './printable.js';
export { ProtectedBrokersModule } from './protected-brokers.js';
export { ServiceConfig } from './service.config.js';
export { ServiceModule, type Shared } from './service.module.js';
export { GuessDelay, ResponseDelay } from './response-delay.js';
export { retryUntilStoresRespond } from './stores.js';
export { within } from './within.js';
