import { Command } from 'commander';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Config } from '#config';
import { Invalid, maxCodeBytes } from '#contracts';
import { printable, runCommand, WRONG_USAGE } from '#service';
import { type Checked, checkComponent } from './local/check-component.js';
import { localFiles } from './local/local-files.js';
import { readState } from './local/read-state.js';
import { LateError, runComponent } from './local/run-component.js';
import { showComponent, showRun, showWarnings } from './local/show.js';
import { ComponentRejected } from './sandbox/sandbox.js';
import type { ProcessSandbox } from './sandbox/process-sandbox.js';
import { readSandboxConfig, startSandbox } from './sandbox/sandbox.provider.js';

class CheckConfig extends Config({ maxCodeBytes }) {}

/** The command for operators and authors that validates component files. It uses the sandbox alone, and needs no running system. */
const program = new Command('sluice').description('components from files');
const command = program.command('component').description('components from files');

command
  .command('check <file>')
  .description('validate a component file and its relative imports; exits 1 if invalid')
  .option('--json', 'print an object')
  .action((file: string, { json }: { json?: boolean }) =>
    withSandbox(async (sandbox) => {
      const checked = await check(sandbox, file);
      if (json) return print(JSON.stringify(checked.ok ? { ok: true, component: checked.description } : checked));
      if (!checked.ok) return complain(file, checked);
      warn(file, checked);
      print(showComponent(checked.description));
    }),
  );

const collect = (value: string, earlier: string[]): string[] => [...earlier, value];

interface RunFlags {
  event: string[];
  prop: string[];
  request?: string;
  header: string[];
  hooks: boolean;
  endpoint: string;
  state?: string;
  json?: boolean;
}

command
  .command('run <file>')
  .description(
    'run a component once in the sandbox, with its hooks, and print its logs, db changes, emits, dedupe and response; exits 1 if a run fails',
  )
  .option('-e, --event <json>', 'the event; may be repeated for several runs; default: a tick of its timer, or {}', collect, [])
  .option('-p, --prop <name=value>', 'a prop; may be repeated', collect, [])
  .option('-r, --request <body>', 'instead of an event: a POST request to its endpoint')
  .option('-H, --header <name: value>', 'a header of the request; may be repeated', collect, [])
  .option('--no-hooks', 'without deploy, activate and deactivate')
  .option('--endpoint <url>', 'the URL of its endpoint', 'http://localhost:3001/local')
  .option('--state <file>', 'keep db and dedupe in this file between calls')
  .option('--json', 'print an object per run')
  .action((file: string, { event, prop, request, header, hooks, endpoint, state: stateFile, json }: RunFlags) =>
    withSandbox(async (sandbox) => {
      const checked = await check(sandbox, file);
      if (!checked.ok) return complain(file, checked);
      warn(file, checked);
      const state = await readState(stateFile);
      const options = { props: prop, events: event, request, headers: header, hooks, endpoint, state };
      try {
        for await (const run of runComponent(sandbox, checked, options)) {
          print(json ? JSON.stringify(run) : showRun(run));
          if (run.status !== 'ok') process.exitCode = 1;
        }
      } finally {
        if (stateFile) await writeFile(stateFile, `${JSON.stringify(state, null, 2)}\n`);
      }
    }),
  );

command
  .command('preload <package...>')
  .description('download npm packages (name or name@range), so that components can import them where no registry can be reached')
  .action((packages: string[]) =>
    withSandbox(async (sandbox) => {
      for (const [specifier, version] of Object.entries(await sandbox.preload(packages))) console.log(`${specifier}  ${version}`);
    }),
  );

await runCommand(() => ({ program, close: async () => {} }));

/** Components must not control the terminal. */
function print(text: string): void {
  console.log(printable(text));
}

async function check(sandbox: ProcessSandbox, file: string): Promise<Checked> {
  return checkComponent(sandbox, await localFiles(file), CheckConfig.read().maxCodeBytes);
}

function warn(file: string, { entry, component, description }: Extract<Checked, { ok: true }>): void {
  if (description.warnings) console.error(printable(showWarnings(file, entry, component.code, description)));
}

function complain(file: string, { error, file: neighbour, line }: Extract<Checked, { ok: false }>): void {
  const place = neighbour === null ? file : join(dirname(file), neighbour);
  console.error(printable(`${place}${line === null ? '' : `:${line}`}: ${error}`));
  process.exitCode = 1;
}

async function withSandbox(work: (sandbox: ProcessSandbox) => Promise<void>): Promise<void> {
  // a single inspection: no processes need to be ready in advance
  const sandbox = await startSandbox({ ...readSandboxConfig(), blanks: 0, warmModules: [] });
  try {
    await work(sandbox);
  } catch (error) {
    if (!(error instanceof ComponentRejected || error instanceof LateError || error instanceof Invalid)) throw error;
    console.error(printable(error.message));
    process.exitCode = error instanceof Invalid ? WRONG_USAGE : 1;
  } finally {
    await sandbox.close();
  }
}
