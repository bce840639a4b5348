// sluice kafka acls: prints the permissions that each service needs in Kafka, for kafka-acls.sh or Strimzi. They are derived from the contracts.
import { Command, Option } from 'commander';
import { deadLetterTopic, SERVICES, topicAccess, topicSpecs } from '../dist/libs/contracts/src/index.js';
import { exitAsMisused } from './shell/wrong-usage.mjs';

/**
 * @typedef {object} Acl
 * @property {'topic' | 'group'} type
 * @property {string} name
 * @property {'literal' | 'prefix'} pattern
 * @property {string[]} operations
 *
 * @typedef {{ user: string, acls: Acl[] }} Grant
 */

/**
 * @param {string} prefix of the users' names
 * @returns {Grant[]}
 */
const grants = (prefix) => [
  ...SERVICES.map((service) => ({ user: `${prefix}${service}`, acls: serviceAcls(service) })),
  migration(prefix),
  operator(prefix),
];

/**
 * @param {(typeof SERVICES)[number]} service
 * @returns {Acl[]}
 */
function serviceAcls(service) {
  const { reads, writes, groupPrefix } = topicAccess(service);
  const topics = [...new Set([...reads, ...writes])].sort().map((name) => ({
    type: /** @type {const} */ ('topic'),
    name,
    pattern: /** @type {const} */ ('literal'),
    operations: [...(reads.includes(name) ? ['Read'] : []), ...(writes.includes(name) ? ['Write'] : []), 'Describe', 'DescribeConfigs'],
  }));
  // a process deletes its own consumer group
  return [...topics, { type: 'group', name: groupPrefix, pattern: 'prefix', operations: ['Read', 'Describe', 'Delete'] }];
}

/**
 * `sluice migrate` creates the topics, compares existing ones with the requirements and limits their size.
 * @param {string} prefix
 * @returns {Grant}
 */
const migration = (prefix) => ({
  user: `${prefix}migrate`,
  acls: topicSpecs()
    .map(({ topic }) => topic)
    .sort()
    .map((name) => ({ type: 'topic', name, pattern: 'literal', operations: ['Create', 'Describe', 'DescribeConfigs', 'AlterConfigs'] })),
});

/**
 * `sluice dead-letters` reads what the services have set aside.
 * @param {string} prefix
 * @returns {Grant}
 */
const operator = (prefix) => ({
  user: `${prefix}operator`,
  acls: [
    ...SERVICES.map((service) => ({
      type: /** @type {const} */ ('topic'),
      name: deadLetterTopic(service),
      pattern: /** @type {const} */ ('literal'),
      operations: ['Read', 'Describe'],
    })),
    { type: 'group', name: 'operator.', pattern: 'prefix', operations: ['Read', 'Describe', 'Delete'] },
  ],
});

/** @param {Grant[]} all */
const asCommands = (all) =>
  all
    .flatMap(({ user, acls }) =>
      acls.map(({ type, name, pattern, operations }) =>
        [
          `kafka-acls.sh --bootstrap-server "$BOOTSTRAP" --command-config "$CONFIG" --add --allow-principal User:${user}`,
          ...operations.map((operation) => `--operation ${operation}`),
          `--${type} ${name}`,
          ...(pattern === 'prefix' ? ['--resource-pattern-type prefixed'] : []),
        ].join(' '),
      ),
    )
    .join('\n');

/**
 * KafkaUser resources of Strimzi.
 * @param {Grant[]} all
 * @param {string} cluster
 */
const asStrimzi = (all, cluster) =>
  all
    .map(({ user, acls }) =>
      [
        'apiVersion: kafka.strimzi.io/v1',
        'kind: KafkaUser',
        'metadata:',
        `  name: ${user}`,
        '  labels:',
        `    strimzi.io/cluster: ${cluster}`,
        'spec:',
        '  authentication:',
        '    type: scram-sha-512',
        '  authorization:',
        '    type: simple',
        '    acls:',
        ...acls.flatMap(({ type, name, pattern, operations }) => [
          `      - resource: { type: ${type}, name: ${name}, patternType: ${pattern} }`,
          `        operations: [${operations.join(', ')}]`,
        ]),
      ].join('\n'),
    )
    .join('\n---\n');

const words = process.argv.slice(2);
while (['kafka', 'acls'].includes(words[0] ?? '')) words.shift();
const program = new Command('sluice kafka acls')
  .description('print the permissions in Kafka that each service needs, one user per service')
  .addOption(new Option('--format <format>', 'how to print them').choices(['commands', 'strimzi', 'json']).default('commands'))
  .option('--user-prefix <prefix>', "prefix of the users' names", 'sluice-')
  .option('--cluster <name>', 'name of the Kafka resource, for strimzi', 'kafka')
  .exitOverride(exitAsMisused)
  .parse(words, { from: 'user' });
/** @type {{ format: string, userPrefix: string, cluster: string }} */
const { format, userPrefix, cluster } = program.opts();
const all = grants(userPrefix);
if (format === 'json') console.log(JSON.stringify(all, null, 2));
else console.log(format === 'strimzi' ? asStrimzi(all, cluster) : asCommands(all));
