import { Command, Option } from 'commander';
import manifest from '../package.json' with { type: 'json' };
import { EXAMPLES } from './examples.js';
import { usageError } from './session/errors.js';
import { collected, given, once } from './session/option-values.js';
import { FORMATS } from './session/output.js';
import { type CommonOptions, Session } from './session/session.js';

/** The action of a command: it gets the session, the arguments of the command and its options. */
type Action = (session: Session, ...argumentsAndOptions: never[]) => unknown;

/** Adds a command with the options that all have. Each command loads its code when it runs. */
type AddCommand = (usage: string, description: string, load: () => Promise<Action>) => Command;

const PROP = ['-p, --prop <name=value>', 'the value of a prop: JSON, text, or @file; repeatable', collected] as const;
const STREAM = ['--stream <name>', 'a custom stream, or * for all of them'] as const;
const FILE = ['-f, --file <path>', 'a file, a folder, or - for standard input', once] as const;
const SET = ['--set <name>', 'the set that the files belong to; default: default'] as const;
const PRUNE = ['--prune', 'also delete what apply has created in this set and the files no longer contain'] as const;

/** The whole command line. */
export function program(): Command {
  const root = new Command('sluice')
    .description('The command line of Sluice.')
    .version(manifest.version)
    .showHelpAfterError('(add --help for the options)')
    // as main.ts begins all other errors
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'sluice: ')) })
    // so that the options of all commands may come before a command, too
    .enablePositionalOptions()
    .exitOverride();
  for (const option of commonOptions()) root.addOption(option);
  // commander would show the help of the whole program, and exit with 0
  root.on('beforeAllHelp', ({ command }: { command: Command }) => {
    const [word = ''] = root.args;
    const isKnown = ['help', ...root.commands.flatMap((each) => [each.name(), ...each.aliases()])].includes(word);
    if (command === root && /^[^-]/.test(word) && !isKnown) root.error(`error: unknown command '${word}'`);
  });

  const command: AddCommand = (usage, description, load) => {
    const added = root.command(usage).description(description);
    for (const option of commonOptions()) added.addOption(option);
    return added
      .action(async (...received: unknown[]) => {
        // commander passes the arguments, the options and the command
        const options = { ...root.opts(), ...(received.at(-2) as CommonOptions) };
        if (options.output === 'id' && !WITH_ID.includes(added.name())) throw usageError(`-o id is for ${WITH_ID.join(', ')}`);
        const action = await load();
        await action(new Session(options), ...(received.slice(0, -2) as never[]), options as never);
      })
      .addHelpText('after', `\nExamples:\n${(EXAMPLES[added.name()] ?? []).map((example) => `  ${example}\n`).join('')}`);
  };

  addProfileCommands(command);
  addComponentCommands(command);
  addResourceCommands(command);
  addStreamCommands(command);
  addDeliveryCommands(command);
  addManifestCommands(command);
  addToolCommands(command);
  command('completion <shell>', 'print the completion of commands for bash, zsh or fish', async () => {
    const { completion } = await import('./tools/completion.js');
    return (session: Session, shell: string) => session.print(completion(root, shell));
  });
  [root, ...root.commands].forEach(requireValues);
  addAdmin(root);
  return root.addHelpText(
    'after',
    `
Where Sluice is installed:
  dead-letters                  count and list the records that could not be handled
  component check <file>        validate a component; needs no running system, like the next two
  component run <file>          run a component in the sandbox
  component preload <package>   download npm packages for components`,
  );
}

/** The commands whose output is resources, each with an id. */
const WITH_ID = ['deploy', 'get', 'list', 'update', 'whoami'];

/** The options of every command. */
const commonOptions = (): Option[] => [
  new Option('-o, --output <format>', `the format of the output; default: table; id is for ${WITH_ID.join(', ')}`).choices(FORMATS),
  new Option('--profile <name>', 'the profile to use; default: SLUICE_PROFILE, or the one chosen with sluice profile'),
  new Option('--debug', 'log requests to standard error, without their headers and bodies'),
];

/** Options that mean something if they are empty: the default stream, a new id, all names. */
const MAY_BE_EMPTY = ['stream', 'id', 'search'];

/** Makes all other empty values wrong usage: `--name "$UNSET"` would change another source, and `export "$UNSET"` would write to the working folder. */
function requireValues({ registeredArguments, options }: Command): void {
  for (const argument of registeredArguments) if (!argument.variadic) argument.argParser(given);
  for (const option of options)
    if (option.required && !option.parseArg && !MAY_BE_EMPTY.includes(option.attributeName())) option.argParser(given);
}

function addProfileCommands(command: AddCommand): void {
  const account = () => import('./tools/account.js');
  command('login [url]', 'store an API key, which is typed or comes from standard input', async () => (await account()).login);
  command('logout', 'delete the profile in use', async () => (await account()).logout);
  command('whoami', 'show the account in use', async () => (await account()).whoami);
  command('profile [name]', 'list the profiles, or use another one', async () => (await account()).profile);
}

function addComponentCommands(command: AddCommand): void {
  command(
    'deploy <file|key|url>',
    'create a source, or change the one of the same name',
    async () => (await import('./code/deploy.js')).deploy,
  )
    .option('-n, --name <name>', 'the name of the source; default: that of the file, or the key')
    .option(...PROP);
  command('update <source>', 'change parts of a source', async () => (await import('./code/deploy.js')).update)
    .option('--code <file|key|url>', 'another component')
    .option('-n, --name <name>', 'another name')
    .option(...PROP)
    .option('--activate', 'switch it on')
    .option('--deactivate', 'switch it off');
  command(
    'dev <file>',
    'deploy a file whenever it changes, and show its events, logs and errors',
    async () => (await import('./code/dev.js')).dev,
  )
    .option('-n, --name <name>', 'the name of the source; default: that of the file')
    .option(...PROP);
  command('init <file>', 'write the beginning of a component', async () => (await import('./tools/init.js')).init).option(
    '-t, --template <name>',
    'timer or http',
    'timer',
  );
  command('types [folder]', 'write types for components, for an editor and tsc', async () => (await import('./tools/types.js')).types);
}

function addResourceCommands(command: AddCommand): void {
  const resources = () => import('./resources/commands.js');
  command(
    'list [kind]',
    'list sources (default), webhooks, subscriptions, auto-subscriptions, components, connections or keys',
    async () => (await resources()).list,
  )
    .alias('ls')
    .option('-s, --search <text>', 'only those whose names contain the text');
  command('get <name...>', 'show one resource, by id, name or unique beginning', async () => (await resources()).get).alias('describe');
  command('delete <name...>', 'delete one resource', async () => (await resources()).remove)
    .alias('rm')
    .option('-y, --yes', 'do not ask');
  const subscriptions = () => import('./resources/subscribe.js');
  command(
    'subscribe <emitter> <listener|url>',
    'deliver the events of a source or workflow to a webhook, source or workflow',
    async () => (await subscriptions()).subscribe,
  )
    .option(...STREAM)
    .option('-n, --name <name>', 'the name of the webhook of a URL: one of another name is not used; default: the host, for a new one');
  command('unsubscribe <emitter> <listener>', 'delete a subscription', async () => (await subscriptions()).unsubscribe).option(...STREAM);
  command('on <name...>', 'switch a source or webhook on', async () => (await resources()).switchOn);
  command('off <name...>', 'switch a source or webhook off', async () => (await resources()).switchOff);
}

function addStreamCommands(command: AddCommand): void {
  const reading = () => import('./streams/read-events.js');
  for (const each of [
    command('events <emitter>', 'show the last events of a source or workflow, oldest first', async () => (await reading()).events).option(
      ...STREAM,
    ),
    command('logs <emitter>', 'show the last log lines of a source, oldest first', async () => (await reading()).logs),
    command('errors <emitter>', 'show the last errors of a source or workflow, oldest first', async () => (await reading()).errors),
  ])
    each.option('-n, --number <number>', 'how many, 0 to 100', '10').option('-f, --follow', 'also show those that follow, until Ctrl-C');
  command(
    'listen [port|url]',
    'post events to a server on this machine, as a webhook would; without one, show them',
    async () => (await import('./streams/listen.js')).listen,
  )
    .option('-s, --source <name>', 'whose events; required, repeatable', collected)
    .option(...STREAM)
    .option('--after <event>', 'begin after the event with this id; default: with new events')
    .option('--webhook <name>', 'sign with the secret of this webhook')
    .option('--secret-file <file>', 'sign with the secret in this file; default: SLUICE_WEBHOOK_SECRET, or a new one');
  command(
    'publish <emitter>',
    'publish an event in the name of a source or workflow',
    async () => (await import('./streams/publish.js')).publish,
  )
    .option('-d, --data <json>', 'the event: JSON, @file, or - for standard input')
    .option('--stream <name>', 'a custom stream')
    .option('--id <id>', 'the emit id: an event that is published again with it is stored once, and delivered with the same webhook-id');
  command('runs <source>', 'list the last runs of a source, newest first', async () => (await import('./streams/runs.js')).runs).option(
    '-n, --number <number>',
    'how many, 1 to 100',
    '20',
  );
  command('run <source>', 'run a source now, and wait for the result', async () => (await import('./streams/runs.js')).run)
    .option('-d, --data <json>', 'the event passed to run()')
    .option('--no-wait', 'do not wait');
  command(
    'trigger <source>',
    'send a request to the endpoint of a source, as an app would',
    async () => (await import('./streams/trigger.js')).trigger,
  )
    .option('--fixture <name>', 'a sample request, such as github.push')
    .option('-d, --data <json>', 'a JSON body')
    .option('--secret-file <file>', 'sign with the secret in this file; default: SLUICE_FIXTURE_SECRET');
}

function addDeliveryCommands(command: AddCommand): void {
  const deliveries = () => import('./streams/deliveries.js');
  command(
    'deliveries <webhook|emitter> [delivery|event]',
    'list the deliveries to a webhook or those of one event, or show one with its attempts',
    async () => (await deliveries()).deliveries,
  ).option('-n, --number <number>', 'how many, 1 to 100', '20');
  const retrying = () => import('./streams/retry.js');
  command('test <webhook>', 'send a test event to a webhook, and show its response', async () => (await retrying()).test);
  command('retry <webhook> <delivery>', 'retry a delivery now, and wait for the result', async () => (await retrying()).retry).option(
    '--no-wait',
    'do not wait',
  );
  command(
    'recover <webhook>',
    'retry all deliveries that were given up since a time',
    async () => (await retrying()).recover,
  ).requiredOption('--since <time>', 'ISO 8601, Unix seconds, or how long ago: 30m, 24h, 7d');
  command('replay <emitter> <listener>', 'deliver past events once more to one listener', async () => (await deliveries()).replay)
    .requiredOption('--from <time|event>', 'the first: ISO 8601, Unix seconds, how long ago (24h), or an event id')
    .option('--to <time|event>', 'the last; default: the newest')
    .option(...STREAM)
    .option('--dry-run', 'only count them')
    .option('--no-wait', 'do not wait');
}

function addManifestCommands(command: AddCommand): void {
  const manifests = () => import('./manifests/apply.js');
  command('apply', 'make the account what YAML files describe', async () => (await manifests()).apply)
    .requiredOption(...FILE)
    .option(...SET)
    .option(...PRUNE)
    .option('-y, --yes', 'do not ask before deleting')
    .option('--dry-run', 'only show what would change');
  command(
    'diff',
    'show what apply would change; exits with 1 if it is anything, and with another code if it fails',
    async () => (await manifests()).diff,
  )
    .requiredOption(...FILE)
    .option(...SET)
    .option(...PRUNE);
  command('export [folder]', 'write the account as YAML for apply', async () => (await import('./manifests/export.js')).exportAll);
}

function addToolCommands(command: AddCommand): void {
  command(
    'api [operation] [parameters...]',
    'call any operation of the REST API, with parameters name=value; without one, list them',
    async () => (await import('./tools/api.js')).api,
  )
    .option('-d, --data <json>', 'the body: JSON, @file, or - for standard input')
    .option('-H, --header <name: value>', 'a header of the request, such as one of a CloudEvent; repeatable', collected);
  command('verify', 'verify the signature of a delivery on standard input', async () => (await import('./tools/verify.js')).verify)
    .option('-H, --header <name: value>', 'a header of the request; without any, standard input is the whole request', collected)
    .option('--webhook <name>', 'with the secret of this webhook')
    .option('--secret-file <file>', 'with the secret in this file; default: SLUICE_WEBHOOK_SECRET')
    .option('--tolerance <seconds>', 'how old it may be, or none for any age', '300');
  command('secret <webhook>', 'print the signing secret of a webhook', async () => (await import('./tools/verify.js')).secret).option(
    '--rotate',
    'replace it first; the old one also signs for 24 hours',
  );
  command(
    'open [name]',
    'open the documentation of the API, an endpoint or a webhook in a browser',
    async () => (await import('./tools/open.js')).open,
  );
  command('doctor', 'check the installation', async () => (await import('./tools/doctor.js')).doctor);
}

/** The operators' commands: the launcher in the repository and the image handle them, also without `admin`. This package does not contain them. */
const OPERATORS = ['account', 'component', 'dead-letters', 'kafka', 'key', 'migrate', 'registry', 'secrets'];

function addAdmin(root: Command): void {
  for (const name of ['admin', ...OPERATORS])
    root
      .command(`${name} [command...]`, { hidden: name !== 'admin' })
      .description('operator commands: accounts, keys, registry, migrations')
      .allowUnknownOption()
      .helpOption(false)
      .action(() => {
        if (name === 'component')
          throw usageError(
            'component commands need a clone of the repository: go there, and give the path of the file; or docker compose exec runtime sluice component …',
          );
        throw usageError(
          'operator commands run where Sluice is installed: npx sluice admin … in the repository, docker compose exec gateway sluice … with Compose; options come after the command',
        );
      });
}
