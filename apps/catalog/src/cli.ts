import { existsSync } from 'node:fs';
import { Command } from 'commander';
import { Database, DatabaseConfig } from '#database';
import { createLog } from '#observability';
import { commandMessages, type OpenCommand, printable, runCommand, WRONG_USAGE } from '#service';
import { Code, ComponentRow } from './components/component.entity.js';
import { ComponentsRepository } from './components/components.repository.js';
import { schema } from './database/schema.js';
import { RegistryRepository } from './registry/registry.repository.js';
import { RegistryService } from './registry/registry.service.js';

await runCommand(registryOfComponents);

function print(json: boolean | undefined, rows: object[]): void {
  if (json) return void console.log(printable(JSON.stringify(rows)));
  for (const row of rows) {
    const fields = Object.entries(row).map(([name, value]) => `${name}: ${String(value)}`);
    // the names of components are chosen by their authors
    console.log(printable(fields.join('  ')));
  }
}

/** The operator's command for the registry. Adding a component needs the running system, because the runtime inspects the code. */
function registryOfComponents(): OpenCommand {
  const log = createLog('sluice', 'fatal');
  const config = DatabaseConfig.read();
  const database = Database.of(schema, { serverUrl: config.serverUrl, name: config.nameOf(schema.app), max: 2, log });
  const components = new ComponentsRepository(database, database.rows(ComponentRow), database.rows(Code));
  const { messages, whileConnected } = commandMessages('catalog');
  const registry = new RegistryService(new RegistryRepository(database, database.rows(ComponentRow), components), components, messages);

  const program = new Command('sluice')
    .description('the registry of components')
    .hook('preAction', async () => void (await database.open()));
  const command = program.command('registry').description('components that every account can use, by key');
  command
    .command('add')
    // read before anything is connected
    .argument('<path>', 'a file or a folder', (path: string) =>
      existsSync(path) ? path : command.error(`there is no file or folder ${path}`, { exitCode: WRONG_USAGE }),
    )
    .description('register a file, or each file of a folder; replaces an older version of the same key')
    .option('--json', 'print an array')
    .action((path: string, { json }: { json?: boolean }) => whileConnected(async () => print(json, await registry.add(path))));
  command
    .command('list')
    .option('--json', 'print an array')
    .action(async ({ json }: { json?: boolean }) => print(json, await registry.list()));
  command
    .command('remove <key>')
    .description('remove a component: no new sources can be created from any version of it; existing ones keep running')
    .option('--json', 'print an array')
    .action(async (key: string, { json }: { json?: boolean }) => {
      await registry.remove(key);
      print(json, [{ key, removed: true }]);
    });

  return { program, close: () => database.close() };
}
