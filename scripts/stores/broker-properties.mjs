import { existsSync, readFileSync } from 'node:fs';
import { freePort, whyNotListen } from '../shell/ports.mjs';

/**
 * The folder with the broker's data, in its working directory. Not an absolute path: in `log.dirs`, a comma separates two folders, and Java reads the file as
 * ISO-8859-1.
 */
export const DATA_FOLDER = 'data';

export const OFFSETS_SEGMENT_BYTES = '1048576';

/**
 * The configuration of a small Kafka node: broker and controller in one process, a few clients, 256 MB of heap.
 * @param {{ port: number, controllerPort: number }} options
 */
export const brokerProperties = ({ port, controllerPort }) => `# Overwritten by Sluice at every start.
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${controllerPort}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}
advertised.listeners=PLAINTEXT://127.0.0.1:${port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs=${DATA_FOLDER}

# One node: nothing can be replicated, and one partition of each inner topic is enough.
default.replication.factor=1
min.insync.replicas=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1

# Topics are made by the migration, with the partitions and the timestamps that they need.
auto.create.topics.enable=false
num.partitions=4
message.max.bytes=4194304
replica.fetch.max.bytes=4194304
# Allocated as soon as a client announces a request, before it logs in. The largest one has a full batch for each of four partitions of \`events\`.
socket.request.max.bytes=10485760
log.retention.hours=168
# Requests and replies are limited in size: a client that reads a lot must not fill the disk between two checks.
log.retention.check.interval.ms=60000
# Compacted in small segments: all of it is read at each start. Older storages get it, too.
offsets.topic.segment.bytes=${OFFSETS_SEGMENT_BYTES}
# Sluice may be off for weeks: its consumers must find their place again.
offsets.retention.minutes=43200
# An open transaction holds back the events of all accounts in its partitions.
transaction.max.timeout.ms=60000

# A consumer that joins need not wait for others, and one that died is noticed soon.
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
# After kill -9 a broker waits until its own old registration has expired.
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500

# Small: the default buffer of the log cleaner alone would fill this heap.
log.cleaner.threads=1
log.cleaner.dedupe.buffer.size=2097152
log.index.size.max.bytes=1048576
num.network.threads=2
num.io.threads=4
background.threads=2
# The groups' topic has one partition, which one thread serves.
group.coordinator.threads=1
# No heartbeat records in the metadata log of an idle broker.
metadata.max.idle.interval.ms=0
`;

/** The broker itself, for its controller and its own partitions. */
export const BROKER_USER = 'broker';

/**
 * Logins and permissions of a broker, in addition to its listeners: the broker logs in to itself with a password, clients by SCRAM.
 *
 * @param {object} options
 * @param {string} options.brokerListener where the broker itself logs in
 * @param {string} options.clientListener where clients log in; may be the same
 * @param {string} options.superUser the client with all permissions
 * @param {string} options.password of the broker itself
 */
export function loginProperties({ brokerListener, clientListener, superUser, password }) {
  const modules = {
    PLAIN: `org.apache.kafka.common.security.plain.PlainLoginModule required username="${BROKER_USER}" password="${password}" user_${BROKER_USER}="${password}";`,
    'SCRAM-SHA-512': 'org.apache.kafka.common.security.scram.ScramLoginModule required;',
  };
  /** @type {Map<string, (keyof typeof modules)[]>} */
  const mechanisms = new Map([
    ['CONTROLLER', ['PLAIN']],
    [brokerListener, ['PLAIN']],
  ]);
  mechanisms.set(clientListener, ['SCRAM-SHA-512', ...(mechanisms.get(clientListener) ?? [])]);
  return `
inter.broker.listener.name=${brokerListener}
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.mechanism.controller.protocol=PLAIN
${[...mechanisms].flatMap(([listener, names]) => listenerProperties(listener, names, modules)).join('\n')}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:${BROKER_USER};User:${superUser}
`;
}

/**
 * @template {string} Mechanism
 * @param {string} listener
 * @param {Mechanism[]} mechanisms
 * @param {Record<Mechanism, string>} modules
 */
function listenerProperties(listener, mechanisms, modules) {
  const prefix = `listener.name.${listener.toLowerCase()}`;
  return [
    `${prefix}.sasl.enabled.mechanisms=${mechanisms.join(',')}`,
    ...mechanisms.map((mechanism) => `${prefix}.${mechanism.toLowerCase()}.sasl.jaas.config=${modules[mechanism]}`),
  ];
}

/**
 * The port that a listener had last time, unless another process uses it now: no client outside needs to know it.
 * @param {string} config
 * @param {'CONTROLLER' | 'SERVICES'} listener
 * @param {number[]} taken
 */
export async function keptPort(config, listener, taken) {
  const listeners = existsSync(config)
    ? (readFileSync(config, 'utf8')
        .match(/^listeners=.*/gm)
        ?.at(-1) ?? '')
    : '';
  const last = Number(new RegExp(`${listener}://127\\.0\\.0\\.1:(\\d+)`).exec(listeners)?.[1]);
  return last && !taken.includes(last) && (await whyNotListen(last, ['127.0.0.1'])) === null ? last : freePort();
}
