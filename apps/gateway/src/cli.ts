import { Command } from 'commander';
import { SluiceError } from '#contracts';
import { Database, DatabaseConfig } from '#database';
import { createLog } from '#observability';
import { type OpenCommand, runCommand } from '#service';
import { AccountRow, ApiKeyRow } from './accounts/account.entity.js';
import { AccountsRepository } from './accounts/accounts.repository.js';
import { AccountsService } from './accounts/accounts.service.js';
import { schema } from './database/schema.js';
import { FirstAccountConfig, GatewayConfig } from './gateway.config.js';

await runCommand(accountsAndKeys);

/** JSON for programs; for people a line each. */
function print(json: boolean | undefined, value: object | object[]): void {
  if (json) return void console.log(JSON.stringify(value));
  for (const row of [value].flat()) {
    console.log(
      Object.entries(row)
        .filter(([, field]) => field !== null)
        .map(([name, field]) => `${name}: ${field instanceof Date ? field.toISOString() : String(field)}`)
        .join('  '),
    );
  }
}

/** The operator's command for accounts and keys: uses the gateway's database and needs nothing else to run. */
function accountsAndKeys(): OpenCommand {
  const config = DatabaseConfig.read();
  const connection = { serverUrl: config.serverUrl, name: config.nameOf(schema.app), max: 2, log: createLog('sluice', 'warn') };
  const database = Database.of(schema, connection);
  const repository = new AccountsRepository(database, database.rows(AccountRow), database.rows(ApiKeyRow));
  const accounts = new AccountsService(repository, database, GatewayConfig.read());

  const program = new Command('sluice').description('accounts and API keys').hook('preAction', async () => void (await database.open()));
  const account = program.command('account').description('make and list accounts');
  account
    .command('create')
    .description('make an account and its first API key, which is shown only now')
    .requiredOption('--email <address>')
    .option('--username <name>', "default: the address' local part")
    .option('--json', 'print {id, email, api_key}')
    .action(async ({ json, email, username }: { json?: boolean; email: string; username?: string }) => {
      if (!/^[^\s@]+@[^\s@]+$/.test(email)) throw new SluiceError('invalid', `"${email}" is not an e-mail address`);
      print(json, await accounts.create({ email, username }));
    });
  account
    .command('list')
    .option('--json', 'print an array')
    .action(async ({ json }: { json?: boolean }) => print(json, await accounts.list()));
  account
    .command('error-mail <id> <on|off>')
    .description('whether the owner is told of errors by mail')
    .option('--json', 'print {id, error_mail}')
    .action(async (id: string, state: string, { json }: { json?: boolean }) => {
      if (state !== 'on' && state !== 'off') throw new SluiceError('invalid', 'say on or off');
      await accounts.setErrorMail(id, state === 'on');
      print(json, { id, error_mail: state === 'on' });
    });
  account
    .command('bootstrap')
    .description("the first start's account: made when there is none; SLUICE_API_KEY is its key, or one is made")
    .option('--email <address>', 'its address', 'owner@localhost')
    .option('--json', 'print {id, email, api_key, created}')
    .action(async ({ json, email }: { json?: boolean; email: string }) =>
      print(json, await accounts.bootstrap({ email, apiKey: FirstAccountConfig.read().apiKey })),
    );

  const key = program.command('key').description('issue, list and revoke API keys');
  key
    .command('create')
    .description('issue a further key, which is shown only now')
    .requiredOption('--account <id>')
    .option('--name <name>', 'to tell it from others')
    .option('--json', 'print {id, account_id, api_key}')
    .action(async ({ json, account: id, name }: { json?: boolean; account: string; name?: string }) =>
      print(json, await accounts.createKey(id, name ?? null)),
    );
  key
    .command('list')
    .requiredOption('--account <id>')
    .option('--json', 'print an array')
    .action(async ({ json, account: id }: { json?: boolean; account: string }) => print(json, await accounts.listKeys(id)));
  key
    .command('revoke <id>')
    .description('the key opens nothing from now on')
    .option('--json', 'print {id, revoked}')
    .action(async (id: string, { json }: { json?: boolean }) => {
      await accounts.revokeKey(id);
      print(json, { id, revoked: true });
    });

  return { program, close: () => database.close() };
}
