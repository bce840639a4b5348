import { ExplainedError } from '../shell/explained-error.mjs';
import { inRoot } from '../shell/paths.mjs';
import { ensureBuild } from '../setup/setup.mjs';

/** The variables with which a service connects and logs in to Kafka; kafka-login.spec.mjs compares them with the declared ones. */
const VARIABLES = [
  ...['KAFKA_SECURITY_PROTOCOL', 'KAFKA_SASL_MECHANISM', 'KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD', 'KAFKA_SASL_PASSWORD_FILE'],
  ...['KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL', 'KAFKA_SASL_OAUTHBEARER_CLIENT_ID', 'KAFKA_SASL_OAUTHBEARER_SCOPE'],
  ...['KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET', 'KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET_FILE'],
  ...['KAFKA_SSL_CA_LOCATION', 'KAFKA_SSL_CERTIFICATE_LOCATION', 'KAFKA_SSL_KEY_LOCATION'],
  ...['KAFKA_SSL_KEY_PASSWORD', 'KAFKA_SSL_KEY_PASSWORD_FILE'],
];

/** @param {string} variable such as KAFKA_SSL_CA_LOCATION @returns {string} kafka-ssl-ca-location */
const optionOf = (variable) => variable.toLowerCase().replaceAll('_', '-');

/** For node:util's parseArgs: one option for each variable. */
export const kafkaLoginOptions = Object.fromEntries(VARIABLES.map((name) => [optionOf(name), { type: /** @type {const} */ ('string') }]));

/**
 * @param {Record<string, unknown>} options as parsed
 * @returns {Record<string, string>} the variables that were given as options
 */
export const kafkaLoginVariables = (options) =>
  Object.fromEntries(VARIABLES.flatMap((name) => (options[optionOf(name)] === undefined ? [] : [[name, String(options[optionOf(name)])]])));

/**
 * The services' configuration, read from the variables. Builds Sluice if any variable is given.
 *
 * @param {Record<string, string>} variables
 * @returns {Promise<Pick<import('kafkajs').KafkaConfig, 'ssl' | 'sasl'>>}
 */
export async function kafkaLogin(variables) {
  if (Object.keys(variables).length === 0) return {};
  await ensureBuild({ say: console.error });
  const { KafkaConfig } = await import(inRoot('dist', 'libs', 'messaging', 'src', 'kafka.config.js'));
  try {
    const { ssl, sasl } = KafkaConfig.read({ KAFKA_BROKERS: 'localhost:9092', ...variables }).clientOptions();
    return { ssl, sasl };
  } catch (error) {
    const { problems } = /** @type {{ problems?: string[] }} */ (error);
    if (!problems) throw error;
    throw new ExplainedError(problems.join('\n').replace(/KAFKA_[A-Z_]+/g, (name) => `--${optionOf(name)}`));
  }
}
