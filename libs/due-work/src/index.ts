export { DueRows, DueWork, LONGEST_MS, msToFirst } from './due-work.js';
