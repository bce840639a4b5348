export { closeIdleConnections, letClientsLeave } from './close-idle-connections.js';
export { COMMON_SETTINGS, runService, type ServiceOptions } from './run-service.js';
export { LogModule } from './log.module.js';
export { type OpenCommand, runCommand } from './command-line.js';
export { CannotStart, explain, logFatal } from './explain.js';
export { ServiceConfig } from './service.config.js';
export { untilAnswered } from './wait-for.js';
export { dropUnreadBody } from './unread-bodies.js';
