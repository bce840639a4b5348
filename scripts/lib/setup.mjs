/** What has to be there before anything runs. Each of these prints a line only when it really has something to do. */
export { ensureBrokerJars } from './broker-jars.mjs';
export { ensureBuild } from './build.mjs';
export { ensureDependencies } from './dependencies.mjs';
