import { Command } from 'commander';
import { Config } from '#config';
import { maxCodeBytes } from '#contracts';
import { runCommand } from '#service';
import { checkComponent } from './components/check-component.js';
import { localFiles } from './components/local-files.js';
import { showComponent } from './components/show-component.js';
import { readSandboxConfig, startSandbox } from './sandbox/sandbox.provider.js';

class CheckConfig extends Config({ maxCodeBytes }) {}

/** The operator's and the author's command for components from files. Needs no running system: the sandbox is enough. */
const program = new Command('sluice').description('components from files');
program
  .command('component')
  .description('components from files')
  .command('check <file>')
  .description('validate a component file and its relative imports; exits 1 if invalid')
  .option('--json', 'print an object')
  .action(async (file: string, { json }: { json?: boolean }) => {
    const files = await localFiles(file);
    const { maxCodeBytes: maxBytes } = CheckConfig.read();
    // one look at one component: nothing has to be ready or warm
    const sandbox = await startSandbox({ ...readSandboxConfig(), blanks: 0, warmModules: [] });
    try {
      const checked = await checkComponent(sandbox, files, maxBytes);
      if (json) console.log(JSON.stringify(checked));
      else if (checked.ok) console.log(showComponent(checked.component));
      else console.error(`${file}${checked.line === null ? '' : `:${checked.line}`}: ${checked.error}`);
      if (!checked.ok) process.exitCode = 1;
    } finally {
      await sandbox.close();
    }
  });

await runCommand(() => ({ program, close: async () => {} }));
