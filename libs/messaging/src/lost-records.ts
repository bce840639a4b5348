import { counter, type Log } from '#observability';

const replaced = counter(
  'log_replaced_total',
  'Partitions whose log was replaced by another one, so that they were read from the beginning.',
  ['topic'],
);
const missed = counter('log_records_missed_total', 'Records that retention deleted before a consumer had read them.', ['topic', 'group']);

/** Records that retention deleted before they were read: the offsets from `from`, inclusive, to `to`, exclusive. */
export interface MissedRecords {
  partition: number;
  from: number;
  to: number;
  /** The clock of the last record that was read before, in ms. */
  since: number;
}

/** Where a reader is in its partition. */
interface At {
  topic: string;
  partition: number;
  group?: string;
  /** The offset that the reader wanted, if it is known, and the one from which Kafka returned records. */
  expected?: number;
  fetched: number;
}

/** A topic that was recreated, a broker that lost its disk, or a restored volume: the records since the last position are gone. */
export function reportReplaced(log: Log, fields: At & { end: number }): void {
  replaced.inc({ topic: fields.topic });
  log.error(fields, 'log.replaced');
}

/** Retention deleted the records before they were read. */
export function reportMissed(log: Log, fields: At & { missed: number }): void {
  missed.inc({ topic: fields.topic, group: fields.group ?? '' }, fields.missed);
  log.error(fields, 'log.records-missed');
}
