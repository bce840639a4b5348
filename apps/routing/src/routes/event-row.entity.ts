import { Column, PrimaryColumn } from 'typeorm';
import type { EmitterId } from '#contracts';
import { BYTEWISE_TEXT, packedBytes } from '#database';
import type { EmittedEvent } from '#events';
import type { LogRecord } from '#messaging';

/** An event that waits in the database, with its record. */
export abstract class EventRow {
  /** The event's id, `<ms>-<seq>`. */
  @PrimaryColumn('bigint')
  ms!: number;

  @PrimaryColumn('bigint')
  seq!: number;

  /** The record's key. */
  @Column(BYTEWISE_TEXT)
  emitter_id!: EmitterId;

  @Column(BYTEWISE_TEXT)
  stream!: string;

  /** Of the record, as JSON. */
  @Column('text')
  headers!: string;

  @Column('bytea')
  value!: Buffer;
}

export interface RecordedEvent {
  event: EmittedEvent;
  record: LogRecord;
}

/** The columns of their rows, each as an array; the last three are `value`, as `packedBytes` returns it. */
export const valuesOf = (events: RecordedEvent[]): unknown[] => [
  events.map(({ event }) => event.place.ms),
  events.map(({ event }) => event.place.seq),
  events.map(({ event }) => event.emitterId),
  events.map(({ event }) => event.stream),
  events.map(({ record }) => JSON.stringify(headersOf(record))),
  ...packedBytes(events.map(({ record }) => record.value ?? Buffer.alloc(0))),
];

/** null: it has no value, which counts as absent. */
const headersOf = (record: LogRecord): Record<string, string | null> =>
  Object.fromEntries(record.headerNames().map((name) => [name, record.header(name) ?? null]));
