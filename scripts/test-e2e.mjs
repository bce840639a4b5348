// npm run test:e2e -- --url … --key … --kafka … --endpoints … [-- arguments for jest]: runs the stories of test/ against a running instance.
import { parseArgs } from 'node:util';
import { explain, ExplainedError } from './lib/explained-error.mjs';
import { describeInstance } from './lib/instance.mjs';
import { runJest, signalJest } from './lib/run-jest.mjs';
import { ensureDependencies } from './lib/setup.mjs';

const USAGE = `Usage: npm run test:e2e -- --url URL --key KEY --kafka HOST:PORT --endpoints URL [options] [-- arguments for jest]

  --url URL             of the REST API, for example http://localhost:3000/v1
  --key KEY             an API key of the instance
  --kafka HOST:PORT     of its Kafka, for producers outside; several brokers are separated by commas
  --endpoints URL       the beginning of its sources' endpoint_url, for example http://localhost:3001
  --receiver-host HOST  the address of this machine, which the instance must list in SLUICE_ALLOW_PRIVATE_HOSTS; webhooks are delivered
                        there (default: the address from which this machine reaches the REST API)
  --cli COMMAND         runs the operator's CLI, for example "docker compose exec -T gateway sluice"
  --topic-prefix TEXT   SLUICE_TOPIC_PREFIX of the instance

The stories create accounts with the CLI. Without --cli, they run in the account of the key, and those that need another account are skipped.
They delete the sources and webhooks that they create; components and accounts remain.`;

const REQUIRED = /** @type {const} */ (['url', 'key', 'kafka', 'endpoints']);

for (const signal of /** @type {const} */ (['SIGTERM', 'SIGHUP'])) process.once(signal, () => signalJest(signal));
process.once('SIGINT', () => {});

try {
  process.exitCode = await testInstance();
} catch (error) {
  console.error(explain(error));
  process.exitCode = 1;
}

async function testInstance() {
  const { values: options, positionals } = readArguments();
  if (options.help) {
    console.log(USAGE);
    return 0;
  }
  const missing = REQUIRED.filter((name) => !options[name]).map((name) => `--${name}`);
  if (missing.length > 0) throw new ExplainedError(`${missing.join(' and ')} must be given.\n\n${USAGE}`);
  await ensureDependencies({ say: console.error });
  const target = await describeInstance({
    ...{ url: options.url ?? '', key: options.key ?? '', kafka: options.kafka ?? '', endpoints: options.endpoints ?? '' },
    ...{ receiverHost: options['receiver-host'], cli: options.cli, topicPrefix: options['topic-prefix'] },
  });
  const { code, summary } = await runJest([...positionals, '--selectProjects', 'e2e'], { SLUICE_E2E_TARGET: JSON.stringify(target) });
  console.log(summary);
  return code;
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        url: { type: 'string' },
        key: { type: 'string' },
        kafka: { type: 'string' },
        endpoints: { type: 'string' },
        'receiver-host': { type: 'string' },
        cli: { type: 'string' },
        'topic-prefix': { type: 'string', default: '' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
  } catch (error) {
    throw new ExplainedError(`${/** @type {Error} */ (error).message}\n\n${USAGE}`);
  }
}
