import { Command } from 'commander';
import { Config } from '#config';
import { maxCodeBytes } from '#contracts';
import { runCommand } from '#service';
import { checkComponent } from './components/check-component.js';
import { localFiles } from './components/local-files.js';
import { showComponent } from './components/show-component.js';
import { readSandboxConfig, startSandbox } from './sandbox/sandbox.provider.js';

class CheckConfig extends Config({ maxCodeBytes }) {}

/** The command for operators and authors that validates component files. It uses the sandbox alone, and needs no running system. */
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
    // a single inspection: no processes need to be ready in advance
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
