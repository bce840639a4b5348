export { AccountPace, BYTES_PER_UNIT, EVENT_UNITS, KILL_UNITS, MS_PER_UNIT, REQUEST_UNITS, RUN_UNITS } from './account-pace.js';
export { FairnessModule } from './fairness.module.js';
