// npm run build: installs what is missing, and compiles and bundles what has changed. Prints a line if it has work to do.
import { explain } from './shell/explained-error.mjs';
import { ensureBuild, ensureDependencies } from './setup/setup.mjs';

try {
  await ensureDependencies({ say: console.log });
  await ensureBuild();
} catch (error) {
  console.error(explain(error));
  process.exitCode = 1;
}
