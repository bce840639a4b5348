export { LogProgress, type Offsets } from './log-progress.js';
