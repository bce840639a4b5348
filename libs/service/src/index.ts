export { closeIdleConnections, letClientsLeave } from './close-idle-connections.js';
export { runService, type ServiceOptions } from './run-service.js';
export { LogModule } from './log.module.js';
export { type OpenCommand, runCommand } from './command-line.js';
export { explain, logFatal } from './explain.js';
export { CannotStart } from './cannot-start.js';
export { COMMON_SETTINGS } from './run-service.js';
export { ServiceConfig } from './service.config.js';
export { untilAnswered } from './wait-for.js';
