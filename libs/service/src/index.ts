export { invalidPayload } from './invalid-payload.js';
export { runService, type ServiceOptions } from './run-service.js';
