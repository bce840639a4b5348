// npm run build [-- --install]: compiles and bundles what has changed, with --install after installing what is missing. Prints a line if it has work to do.
import { explain } from './shell/explained-error.mjs';
import { ensureBuild, ensureDependencies } from './setup/setup.mjs';

try {
  if (process.argv.includes('--install')) await ensureDependencies({ say: console.log });
  await ensureBuild();
} catch (error) {
  console.error(explain(error));
  process.exitCode = 1;
}
