export { DueRows, DueWork, msToFirst } from './due-work.js';
