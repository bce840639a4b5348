import { constants } from 'node:os';
import { Argument, Command, Option } from 'commander';
import { SluiceError } from '#contracts';
import { Database, DatabaseConfig } from '#database';
import { createLog } from '#observability';
import { type CommandMessages, commandMessages, type OpenCommand, printable, runCommand } from '#service';
import { AccountRow, ApiKeyRow, KEY_SCOPES, type KeyScope } from './accounts/account.entity.js';
import { withAccountLock } from './operator/account-lock.js';
import { AccountOperations } from './operator/account-operations.js';
import { AccountsRepository } from './accounts/accounts.repository.js';
import { emailAddress, nameText } from './operator/argument-texts.js';
import { confirmDeletion } from './operator/confirm-deletion.js';
import { deleteAccountRows } from './operator/account-rows.js';
import { AccountsService } from './accounts/accounts.service.js';
import { KeyUses } from './accounts/key-uses.js';
import { schema } from './database/schema.js';
import { FirstAccountConfig, GatewayConfig } from './gateway.config.js';

await runCommand(accountsAndKeys);

/** JSON for programs, one line per item for people. */
function print(json: boolean | undefined, value: object | object[]): void {
  if (json) return void console.log(printable(JSON.stringify(value)));
  for (const row of [value].flat()) {
    const fields = Object.entries(row)
      .filter(([, field]) => field !== null)
      .map(([name, field]) => `${name}: ${field instanceof Date ? field.toISOString() : String(field)}`);
    // the names of keys are chosen by their users
    console.log(printable(fields.join('  ')));
  }
}

/** The operator's command for accounts and keys. Most need only the gateway's database. Those that concern all services need the running system. */
function accountsAndKeys(): OpenCommand {
  const config = DatabaseConfig.read();
  const connection = { serverUrl: config.serverUrl, name: config.nameOf(schema.app), max: 2, log: createLog('sluice', 'warn') };
  const database = Database.of(schema, connection);
  const repository = new AccountsRepository(database, database.rows(AccountRow), database.rows(ApiKeyRow));
  const accounts = new AccountsService(repository, database, GatewayConfig.read(), new KeyUses(repository, connection.log));

  const { messages, whileConnected } = commandMessages('gateway');
  const operations = new AccountOperations(
    accounts,
    (id) => deleteAccountRows(database, repository, id),
    messages,
    (id, work) => withAccountLock(database, id, work),
    (text) => console.error(text),
  );

  const program = new Command('sluice').description('accounts and API keys').hook('preAction', async () => void (await database.open()));
  const account = addAccountCommands(program, accounts);
  addOperations(account, operations, whileConnected);
  addKeyCommands(program, accounts);
  /** After an error, or before the signal ends the command. */
  const warn = () => operations.unfinished !== undefined && console.error(operations.unfinished);
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      warn();
      process.exit(128 + constants.signals[signal]);
    });
  const close = async () => {
    warn();
    await database.close();
  };
  return { program, close };
}

/** Only these are connected to Kafka: others run before its topics exist. */
function addOperations(account: Command, operations: AccountOperations, whileConnected: CommandMessages['whileConnected']): void {
  for (const [name, suspended, description] of [
    ['suspend', true, 'refuse its keys, and stop its sources and deliveries, until it is resumed; nothing is deleted'],
    ['resume', false, 'let a suspended account continue as it was'],
  ] as const)
    account
      .command(`${name} <id>`)
      .description(description)
      .option('--json', 'print {id, suspended, sources, workflows, webhooks}')
      .action((id: string, { json }: { json?: boolean }) =>
        whileConnected(async () => print(json, { id, suspended, ...(await operations.suspend(id, suspended)) })),
      );
  account
    .command('delete <id>')
    .description('delete an account and everything that it has: sources, webhooks, subscriptions, events, components, connections, keys')
    .option('--yes', 'do not ask')
    .option('--json', 'print {id, deleted} and how much was deleted; needs --yes')
    .action((id: string, { json, yes }: { json?: boolean; yes?: boolean }) =>
      whileConnected(async () => {
        if (!yes) {
          const question = `Delete the account ${id} (${(await operations.find(id)).email}) and everything that it has? This cannot be undone`;
          if (json || !process.stdin.isTTY) throw new SluiceError('invalid', `${question}: repeat the command with --yes`);
          if (!(await confirmDeletion({ input: process.stdin, output: process.stderr }, printable(`${question}. Type "yes": `)))) return;
        }
        print(json, { id, deleted: true, ...(await operations.delete(id)) });
      }),
    );
}

function addAccountCommands(program: Command, accounts: AccountsService): Command {
  const account = program.command('account').description('create, list, suspend and delete accounts');
  account
    .command('create')
    .description('create an account and its first API key, which is shown only once')
    .requiredOption('--email <address>', 'of the owner', emailAddress)
    .option('--username <name>', 'default: the local part of the address', nameText)
    .option('--json', 'print {id, email, api_key}')
    .action(async ({ json, email, username }: { json?: boolean; email: string; username?: string }) => {
      print(json, await accounts.create({ email, username }));
    });
  account
    .command('list')
    .option('--json', 'print an array')
    .action(async ({ json }: { json?: boolean }) => print(json, await accounts.list()));
  account
    .command('error-mail <id>')
    .addArgument(new Argument('<state>').choices(['on', 'off']))
    .description('switch error mail to the owner on or off')
    .option('--json', 'print {id, error_mail}')
    .action(async (id: string, state: string, { json }: { json?: boolean }) => {
      await accounts.setErrorMail(id, state === 'on');
      print(json, { id, error_mail: state === 'on' });
    });
  account
    .command('bootstrap')
    .description('create the first account if there is none; its key is SLUICE_API_KEY, or generated')
    .option('--email <address>', 'the email address of the account', emailAddress, 'owner@localhost')
    .option('--json', 'print {id, email, api_key, created}')
    .action(async ({ json, email }: { json?: boolean; email: string }) =>
      print(json, await accounts.bootstrap({ email, apiKey: FirstAccountConfig.read().apiKey })),
    );
  return account;
}

function addKeyCommands(program: Command, accounts: AccountsService): void {
  const key = program.command('key').description('issue, list and revoke API keys');
  key
    .command('create')
    .description('issue another key, which is shown only once')
    .requiredOption('--account <id>')
    .option('--name <name>', 'a name to recognise the key', nameText)
    .addOption(new Option('--scope <scope>', 'what the key may do').choices(KEY_SCOPES).default('write'))
    .option('--json', 'print {id, account_id, api_key}')
    .action(async ({ json, account: id, name, scope }: { json?: boolean; account: string; name?: string; scope: KeyScope }) =>
      print(json, await accounts.createKey(id, name ?? null, scope)),
    );
  key
    .command('list')
    .requiredOption('--account <id>')
    .option('--json', 'print an array')
    .action(async ({ json, account: id }: { json?: boolean; account: string }) => print(json, await accounts.listKeys(id)));
  key
    .command('revoke <id>')
    .description('revoke a key at once')
    .option('--json', 'print {id, revoked}')
    .action(async (id: string, { json }: { json?: boolean }) => {
      await accounts.revokeKey(id);
      print(json, { id, revoked: true });
    });
}
