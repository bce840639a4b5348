// npm run test:e2e -- --url … --key … --kafka … --endpoints … [-- arguments for jest]: runs the stories of test/ against a running instance.
import { runScript } from './shell/command.mjs';
import { ExplainedError } from './shell/explained-error.mjs';
import { describeInstance } from './stories/instance.mjs';
import { kafkaLoginOptions, kafkaLoginVariables } from './stories/kafka-login.mjs';
import { runStories, stopJestOnSignals } from './stories/run-jest.mjs';
import { ensureDependencies } from './setup/setup.mjs';

const USAGE = `Usage: npm run test:e2e -- --url URL --key KEY --kafka HOST:PORT --endpoints URL [options] [-- arguments for jest]

  --url URL             of the REST API, for example http://localhost:3000/v1
  --key KEY             an API key of the instance
  --kafka HOST:PORT     of its Kafka, for producers outside; several brokers are separated by commas
  --endpoints URL       the beginning of its sources' endpoint_url, for example http://localhost:3001
  --receiver-host HOST  the address of this machine, which the instance must list in SLUICE_ALLOW_PRIVATE_HOSTS; webhooks are delivered
                        there (default: the address from which this machine reaches the REST API)
  --cli COMMAND         runs the operator's CLI, for example "docker compose exec -T gateway sluice"
  --topic-prefix TEXT   SLUICE_TOPIC_PREFIX of the instance

  TLS and a login for producers outside: the services' variables as options, for example
  --kafka-security-protocol sasl_ssl --kafka-ssl-ca-location ca.pem --kafka-sasl-username stories --kafka-sasl-password-file password

The stories create accounts with the CLI. Without --cli, they run in the account of the key, and those that need another account are skipped.
They delete the sources and webhooks that they create; components and accounts remain.`;

const REQUIRED = /** @type {const} */ (['url', 'key', 'kafka', 'endpoints']);

stopJestOnSignals();

await runScript(
  {
    usage: USAGE,
    options: {
      url: { type: 'string' },
      key: { type: 'string' },
      kafka: { type: 'string' },
      endpoints: { type: 'string' },
      'receiver-host': { type: 'string' },
      cli: { type: 'string' },
      'topic-prefix': { type: 'string', default: '' },
      ...kafkaLoginOptions,
    },
  },
  testInstance,
);

/**
 * @param {Record<string, string | undefined>} options
 * @param {string[]} positionals
 */
async function testInstance(options, positionals) {
  const missing = REQUIRED.filter((name) => !options[name]).map((name) => `--${name}`);
  if (missing.length > 0) throw new ExplainedError(`${missing.join(' and ')} must be given.\n\n${USAGE}`);
  await ensureDependencies({ say: console.error });
  const target = await describeInstance({
    ...{ url: options.url ?? '', key: options.key ?? '', kafka: options.kafka ?? '', endpoints: options.endpoints ?? '' },
    ...{ receiverHost: options['receiver-host'], cli: options.cli, topicPrefix: options['topic-prefix'] },
    kafkaVariables: kafkaLoginVariables(options),
  });
  const { code, summary } = await runStories(target, positionals);
  console.log(summary);
  return code;
}
