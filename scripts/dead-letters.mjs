// sluice dead-letters: counts and lists the records that services have set aside, by service, topic and reason.
import { Command, Option } from 'commander';
import { checkConfig } from '../dist/libs/config/src/index.js';
import { deadLetterTopic, SERVICES, Unavailable } from '../dist/libs/contracts/src/index.js';
import { KafkaClient, KafkaConfig, LogReader } from '../dist/libs/messaging/src/index.js';
import { createLog } from '../dist/libs/observability/src/index.js';
import { printable, reportFailure, within } from '../dist/libs/service/src/index.js';
import { exitAsMisused } from './shell/wrong-usage.mjs';

/**
 * @typedef {object} DeadLetter
 * @property {string} time ISO 8601, when it was set aside
 * @property {string} service that has set it aside
 * @property {string} topic that has the record
 * @property {number | null} partition null: the service itself tried to send the record
 * @property {number | null} offset
 * @property {string | null} key
 * @property {string} reason
 * @property {Buffer | null} value
 *
 * @typedef {Pick<DeadLetter, 'service' | 'topic' | 'reason'> & { count: number, last: string }} Count
 */

const SHOWN_VALUE = 200;
/** How long the brokers may take to return the offsets of a topic. */
const OFFSETS_WITHIN_MS = 30_000;
const MINUTES = { m: 1, h: 60, d: 24 * 60 };

const words = process.argv.slice(2);
if (words[0] === 'dead-letters') words.shift();
const program = new Command('sluice dead-letters')
  .description('count the records that services have set aside because they could not handle them, and list the newest ones')
  .option('--since <time>', 'since when: how long ago (30m, 24h, 7d), or a time in UTC (2026-01-31T12:00:00Z)', '24h')
  .addOption(new Option('--service <service>', 'only those of this service').choices(SERVICES))
  .option('-n, --lines <number>', 'how many to list', '10')
  .addOption(
    new Option('-o, --output <format>', 'how to print them; json prints the counts, ndjson whole records')
      .choices(['table', 'json', 'ndjson'])
      .default('table'),
  )
  .exitOverride(exitAsMisused)
  .parse(words, { from: 'user' });
/** @type {{ since: string, service?: string, lines: string, output: string }} */
const options = program.opts();

const log = createLog('dead-letters', 'silent');
try {
  const since = timeOf(options.since);
  const lines = numberOf(options.lines);
  checkConfig([KafkaConfig]);
  const config = KafkaConfig.read();
  const reader = new LogReader(new KafkaClient(config, 'dead-letters', log), log);
  const noKafka = () => new Unavailable(`Kafka does not respond within ${OFFSETS_WITHIN_MS / 1000} s at ${config.brokers.join(', ')}`);
  const services = options.service === undefined ? SERVICES : [options.service];
  /** @type {Map<string, Count>} */
  const counts = new Map();
  /** @type {DeadLetter[]} */
  let newest = [];
  let total = 0;
  setInterval(() => console.error(`… ${total} records read`), 10_000).unref();
  for (const service of services) {
    const topic = deadLetterTopic(/** @type {any} */ (service));
    /** @param {import('../dist/libs/messaging/src/index.js').LogRecord[]} records */
    const take = (_, records) => {
      const read = records.map((record) => deadLetterOf(service, record));
      for (const each of read) count(counts, each);
      newest = [...newest, ...read].sort((one, other) => (one.time < other.time ? 1 : -1)).slice(0, lines);
      total += read.length;
      return true;
    };
    const ranges = await within(OFFSETS_WITHIN_MS, reader.since(topic, since), noKafka);
    // millions take minutes
    await reader.read('operator', topic, ranges, take, { limits: 'batch' });
  }
  if (options.output === 'ndjson') for (const each of newest.reverse()) console.log(JSON.stringify(asJson(each)));
  else if (options.output === 'json') console.log(JSON.stringify([...counts.values()], null, 2));
  else printTable([...counts.values()], newest, since);
} catch (error) {
  reportFailure(error);
  // a request to a broker that hangs would keep the process for minutes
  process.exit();
}

/**
 * @param {string} service
 * @param {import('../dist/libs/messaging/src/index.js').LogRecord} record
 * @returns {DeadLetter}
 */
function deadLetterOf(service, record) {
  return {
    time: new Date(record.timestamp).toISOString(),
    service,
    topic: record.header('dead-letter-topic') ?? '',
    partition: numberIn(record.header('dead-letter-partition')),
    offset: numberIn(record.header('dead-letter-offset')),
    key: record.key === '' ? null : record.key,
    reason: record.header('dead-letter-reason') ?? '',
    value: record.value,
  };
}

/** @param {string | undefined} header */
function numberIn(header) {
  return header === undefined ? null : Number(header);
}

/**
 * @param {Map<string, Count>} counts
 * @param {DeadLetter} deadLetter
 */
function count(counts, { service, topic, reason, time }) {
  const key = JSON.stringify([service, topic, reason]);
  const before = counts.get(key);
  counts.set(key, { service, topic, reason, count: (before?.count ?? 0) + 1, last: before && before.last > time ? before.last : time });
}

/** @param {DeadLetter} deadLetter */
function asJson({ value, ...rest }) {
  const text = value?.toString('utf8');
  return {
    ...rest,
    ...(text !== undefined && value && !Buffer.from(text).equals(value)
      ? { value_base64: value.toString('base64') }
      : { value: text ?? null }),
  };
}

/**
 * @param {Count[]} counts
 * @param {DeadLetter[]} newest
 * @param {number} since ms since the epoch
 */
function printTable(counts, newest, since) {
  if (counts.length === 0) return console.log(`No record was set aside since ${new Date(since).toISOString()}.`);
  const rows = counts
    .sort((one, other) => other.count - one.count)
    .map(({ service, topic, reason, count: number, last }) => [String(number), service, topic, last, reason]);
  const all = [['COUNT', 'SERVICE', 'TOPIC', 'LAST', 'REASON'], ...rows].map((row) =>
    row.map((cell) => printable(cell).replaceAll('\n', ' ')),
  );
  const widths = [0, 1, 2, 3].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  for (const row of all) console.log(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  for (const { time, topic, partition, offset, key, reason, value } of newest.reverse()) {
    console.log(
      `\n${time}  ${topic}${partition === null ? '' : ` ${partition}@${offset}`}  key ${key === null ? 'none' : printable(JSON.stringify(key))}\n  ${printable(reason)}`,
    );
    if (value)
      console.log(
        `  ${printable(value.toString('utf8', 0, SHOWN_VALUE)).replaceAll('\n', ' ')}${value.length > SHOWN_VALUE ? ` … (${value.length} bytes)` : ''}`,
      );
  }
}

/**
 * @param {string} text
 * @returns {number} ms since the epoch
 */
function timeOf(text) {
  const [, number, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  // Kafka refuses times before 1970
  if (unit !== undefined) return Math.max(0, Date.now() - Number(number) * MINUTES[/** @type {'m' | 'h' | 'd'} */ (unit)] * 60_000);
  const time = /^\d{4}-\d\d-\d\d(T[\d:.]+Z)?$/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(time)
    ? program.error('--since must be how long ago (30m, 24h, 7d), or a time in UTC (2026-01-31T12:00:00Z)')
    : Math.max(0, time);
}

/** @param {string} text */
function numberOf(text) {
  if (!/^\d{1,6}$/.test(text)) return program.error('--lines must be a whole number');
  return Number(text);
}
