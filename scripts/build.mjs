// npm run build: compiles and bundles what has changed. Prints a line if it has work to do.
import { explain } from './shell/explained-error.mjs';
import { ensureBuild } from './setup/setup.mjs';

try {
  await ensureBuild();
} catch (error) {
  console.error(explain(error));
  process.exitCode = 1;
}
