export { statsSchema } from './stat.entity.js';
export { Stats } from './stats.js';
export { StatsModule } from './stats.module.js';
