export { PayloadPipe } from './payload-pipe.js';
export { runService, type ServiceOptions } from './run-service.js';
export { LogModule } from './log.module.js';
