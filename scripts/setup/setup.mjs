/** The prerequisites of every command. Each step prints a line only if it has work to do. */
export { ensureKafka } from './kafka.mjs';
export { ensureBuild } from './build.mjs';
export { ensureDependencies } from './dependencies.mjs';
