export { AccountPace, BYTES_PER_UNIT, EVENT_UNITS, MS_PER_UNIT, REQUEST_UNITS } from './account-pace.js';
export { FairnessModule } from './fairness.module.js';
