export { BodyBuffer } from './body-buffer.js';
export { type ClientError, respondToClientError } from './client-errors.js';
export { limitConnections } from './connection-limits.js';
export {
  CHECK_CONNECTIONS_MS,
  closeBehindUpgrade,
  closeOf,
  closeUnreadConnections,
  continueBody,
  deferContinue,
  dropUnreadBody,
  endConnectionsOnClose,
  isRepeated,
  HEADERS_MS,
  KEEP_ALIVE_MS,
  letClientsLeave,
  requestTarget,
} from './http-connections.js';
export { HttpServerConfig } from './http-server.config.js';
export { memoryBytes } from './memory.js';
export { handleInOrder } from './requests-in-order.js';
export { GuessDelay, ResponseDelay } from './response-delay.js';
