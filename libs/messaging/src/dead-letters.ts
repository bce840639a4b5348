import { deadLetterTopic, type Service } from '#contracts';
import { counter, type Log } from '#observability';
import { isRefused, reasonOf } from './kafka-errors.js';
import type { LogRecord } from './log-record.js';
import { type OutgoingRecord, type Publisher, shares } from './publisher.js';
import { MAX_HEADERS } from './record-headers.js';

const deadLetters = counter('dead_letters_total', 'Records that were copied to a dead-letter topic.', ['topic']);

/** The most that a dead letter has in addition. */
const OWN_HEADERS = 4;

/**
 * How much is copied of a key, in characters, and of the headers, in bytes and in number: readers ignore those behind the first thousand. Bytes that are not UTF-8 become three times as long, and a copy that does not
 * fit into the dead-letter topic would be refused.
 */
const MOST_COPIED = { key: 1000, headers: 64 * 1024, number: MAX_HEADERS - OWN_HEADERS };

/** The copy of a record that cannot be handled, with the reason and its position. The value is the same, byte for byte; a key or headers that are long are cut. */
export function deadLetterRecord(service: Service, record: LogRecord, reason: string): OutgoingRecord {
  const { topic, key, value, partition, offset } = record;
  const position = { 'dead-letter-partition': String(partition), 'dead-letter-offset': String(offset) };
  return copyOf({ topic, key: key ?? '', value, headers: record.headerEntries() }, { service, reason, position });
}

function copyOf(
  { topic, key, value, headers = {} }: OutgoingRecord,
  { service, reason, position = {} }: { service: Service; reason: string; position?: Record<string, string> },
): OutgoingRecord {
  deadLetters.inc({ topic });
  const own = { 'dead-letter-reason': reason.slice(0, 1000), 'dead-letter-topic': topic, ...position };
  return {
    topic: deadLetterTopic(service),
    key: key.slice(0, MOST_COPIED.key),
    value,
    headers: { ...copiedHeaders(headers), ...own },
  };
}

function copiedHeaders(headers: Record<string, string>): Record<string, string> {
  let left = MOST_COPIED.headers;
  const fitting = Object.entries(headers)
    .slice(0, MOST_COPIED.number)
    .filter(([name, value]) => {
      const bytes = Buffer.byteLength(name) + Buffer.byteLength(value);
      if (bytes > left) return false;
      left -= bytes;
      return true;
    });
  return Object.fromEntries(fitting);
}

/** The sender of the records of a service. */
export interface Sender {
  publisher: Pick<Publisher, 'send'>;
  service: Service;
  log: Log;
}

/**
 * Sends records that nobody waits for, in the work of a lane or a batch. A record that Kafka refuses would be refused again at each repetition, and the
 * lane would never continue: it becomes a dead letter. If Kafka refuses this one, too, it is only logged. Returns those that it refuses.
 */
export async function sendOrSetAside(records: OutgoingRecord[], sender: Sender): Promise<OutgoingRecord[]> {
  const { publisher, service, log } = sender;
  const refused = (await Promise.all(shares(records).map((share) => refusedOf(share, (part) => publisher.send(part))))).flat();
  for (const { item: record, reason } of refused)
    log.error({ topic: record.topic, key: record.key.slice(0, 100), bytes: record.value?.length, reason }, 'record.refused');
  const others = refused.filter(({ item }) => item.topic !== deadLetterTopic(service));
  const copies = others.map(({ item, reason }) => copyOf(item, { service, reason }));
  if (copies.length > 0) await sendOrSetAside(copies, sender);
  return refused.map(({ item }) => item);
}

/** An item that Kafka refuses. */
interface Refused<Item> {
  item: Item;
  reason: string;
}

/** Sends items together. Returns those that Kafka refuses. It has the others, perhaps twice. */
export async function refusedOf<Item>(items: Item[], send: (items: Item[]) => Promise<void>): Promise<Refused<Item>[]> {
  try {
    await send(items);
    return [];
  } catch (error) {
    if (!isRefused(error)) throw error;
    const [item] = items;
    if (item && items.length === 1) return [{ item, reason: `Kafka refuses the record: ${reasonOf(error)}` }];
  }
  const refused: Refused<Item>[] = [];
  for (const each of items) refused.push(...(await refusedOf([each], send)));
  return refused;
}
