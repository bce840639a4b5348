export { DELETE_STATS, statsSchema } from './stats.repository.js';
export { Stats } from './stats.js';
export { StatsModule } from './stats.module.js';
