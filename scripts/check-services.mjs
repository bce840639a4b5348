// npm start runs it before it creates a data folder, and when the build or a variable has changed: checks the variables of all services and of the first account, and
// whether components can be jailed on this machine. Prints what is wrong and exits with code 1.
import { checkConfig, ConfigError } from '../dist/libs/config/src/index.js';
import { SERVICES } from '../dist/libs/contracts/src/index.js';
import { CannotStart, COMMON_SETTINGS } from '../dist/libs/service/src/index.js';
import { FirstAccountConfig } from '../dist/apps/gateway/src/gateway.config.js';
import { readSandboxConfig, startSandbox } from '../dist/apps/runtime/src/sandbox/sandbox.provider.js';

try {
  const settings = await Promise.all(
    SERVICES.map(async (service) => (await import(`../dist/apps/${service}/src/${service}.config.js`)).settings),
  );
  checkConfig([...COMMON_SETTINGS, ...settings.flat(), FirstAccountConfig]);
  const sandbox = await startSandbox({ ...readSandboxConfig(), blanks: 0, warmModules: [] });
  await sandbox.close();
} catch (error) {
  if (!(error instanceof ConfigError || error instanceof CannotStart)) throw error;
  const problems = error instanceof ConfigError ? error.problems : [error.message];
  console.error(problems.map((problem) => `${problem}.`).join('\n'));
  process.exitCode = 1;
}
