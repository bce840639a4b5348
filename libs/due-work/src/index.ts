export { DueRows, DueWork } from './due-work.js';
