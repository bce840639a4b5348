import type { EmitterId } from '#contracts';
import {
  comparePlaces,
  coversStream,
  type DeletedRange,
  type EmittedEvent,
  type EventPlace,
  isInRange,
  KEPT_EVENTS,
  logPlaceOf,
  type Stream,
  WAITING_STREAM,
} from '#events';
import { type Transaction, UNIQUE_VIOLATION } from '#database';
import { AHEAD_MS, type Position } from '#messaging';
import { AppendRepository, type StreamKey, type WithdrawnEmit } from './append.repository.js';
import { type KeptEvent, streamKey } from './replay.js';

export interface Row extends StreamKey {
  place: EventPlace;
  emitId: string;
}

/** The database, which two processes share. */
export class MemoryTables {
  readonly events = new Map<string, Row>();
  readonly positions = new Map<number, Position>();
  /** `emitter emit`. */
  readonly withdrawn = new Set<string>();
  /** By partition: the open transaction that has changed its position. */
  readonly locks = new Map<number, MemoryTransaction>();

  /** The newest 100 events, oldest first, as a page shows them. */
  shown({ emitterId, stream }: StreamKey): Row[] {
    return streamRows(this.events.values(), emitterId, stream).slice(-KEPT_EVENTS);
  }
}

interface MemoryTransaction {
  rows: Map<string, Row>;
  added: Row[];
  removed: Set<string>;
  withdrawn: string[];
  moved: Map<number, Position>;
}

const rowKey = ({ emitterId, stream, place }: StreamKey & { place: EventPlace }): string =>
  `${emitterId}/${stream}/${place.ms}-${place.seq}`;
const sameStream = (a: StreamKey, b: StreamKey): boolean => a.emitterId === b.emitterId && a.stream === b.stream;
const streamRows = (rows: Iterable<Row>, emitterId: EmitterId, stream: Stream): Row[] =>
  [...rows].filter((row) => sameStream(row, { emitterId, stream })).sort((a, b) => comparePlaces(a.place, b.place));

class UniqueViolation extends Error {
  readonly code = UNIQUE_VIOLATION;
}

/** Mutants of a repository, which the simulation must detect. */
export type Mutant =
  | 'position committed early'
  | 'fence left out'
  | 'trim by count only'
  | 'no trim before a deletion'
  | 'repeats only skipped'
  | 'clock not kept'
  | 'log not identified'
  | 'late events not moved'
  | 'only events of the future moved'
  | 'withdrawn before the commit'
  | 'surplus of $in withdrawn';

/**
 * The repository in memory, for one process. `step` is awaited before each statement, so the simulation decides what happens in the meantime. `rollBackAll`
 * undoes the transactions of a process that has died, as the server does.
 */
export class MemoryAppendRepository extends AppendRepository {
  private readonly open = new Set<MemoryTransaction>();

  constructor(
    private readonly tables: MemoryTables,
    private readonly step: (name: string) => Promise<void>,
    private readonly mutant?: Mutant,
  ) {
    super(undefined as never);
  }

  override async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const transaction: MemoryTransaction = { rows: new Map(), added: [], removed: new Set(), withdrawn: [], moved: new Map() };
    this.open.add(transaction);
    try {
      await this.step('begin');
      transaction.rows = new Map(this.tables.events);
      const result = await work(transaction as unknown as Transaction);
      await this.step('commit');
      this.commit(transaction);
      // the response is lost if the process or the connection dies here
      await this.step('committed');
      return result;
    } finally {
      this.end(transaction);
    }
  }

  rollBackAll(): void {
    for (const transaction of this.open) this.end(transaction);
  }

  override async positions(partitions: number[]): Promise<Map<number, Position>> {
    await this.step('positions');
    return new Map(
      partitions.map((partition) => {
        const position = this.tables.positions.get(partition) ?? { offset: 0, clock: 0 };
        if (this.mutant === 'clock not kept') return [partition, { ...position, clock: 0 }];
        return [partition, this.mutant === 'log not identified' ? { ...position, timestamp: undefined } : position];
      }),
    );
  }

  override async advance(handle: Transaction, partition: number, before: Position, after: Position): Promise<boolean> {
    const transaction = memory(handle);
    if (this.mutant === 'fence left out') {
      transaction.moved.set(partition, after);
      return true;
    }
    // another transaction that has changed the row must end first
    do await this.step('advance');
    while (this.tables.locks.has(partition));
    const { offset, timestamp } = this.tables.positions.get(partition) ?? { offset: 0, timestamp: undefined };
    const isSameLog = this.mutant === 'log not identified' || timestamp === before.timestamp;
    if (offset !== before.offset || !isSameLog) return false;
    if (this.mutant === 'position committed early') {
      this.tables.positions.set(partition, after);
      return true;
    }
    this.tables.locks.set(partition, transaction);
    transaction.moved.set(partition, after);
    // from here on, the commit of the other transaction is visible
    transaction.rows = new Map(this.tables.events);
    return true;
  }

  override async moveBack(handle: Transaction, partition: number, { from, to }: { from: number; to: number }): Promise<void> {
    await this.step('move back');
    if (this.mutant === 'late events not moved') return;
    const first = this.mutant === 'only events of the future moved' ? Math.max(from, Date.now() + AHEAD_MS) : from;
    const transaction = memory(handle);
    const own = [...transaction.rows.values()].filter(({ place }) => logPlaceOf(place).partition === partition);
    const late = new Set(own.filter(({ place }) => place.ms >= first).map(({ emitterId, stream }) => `${emitterId} ${stream}`));
    for (const stream of late) {
      const rows = own.filter((row) => `${row.emitterId} ${row.stream}` === stream).sort((a, b) => comparePlaces(b.place, a.place));
      for (const [index, row] of rows.entries()) {
        if (row.place.ms < to - index) continue;
        this.removeRow(transaction, row);
        const moved = { ...row, place: { ...row.place, ms: to - index - 1 } };
        transaction.rows.set(rowKey(moved), moved);
        transaction.added.push(moved);
      }
    }
  }

  override async add(handle: Transaction, events: EmittedEvent[]): Promise<void> {
    await this.step('add');
    const transaction = memory(handle);
    for (const { emitterId, stream, place, emitId } of events) {
      const row: Row = { emitterId, stream, place, emitId };
      const isThere = [...transaction.rows.values()].some((other) => sameStream(row, other) && row.emitId === other.emitId);
      if (isThere && this.mutant === 'repeats only skipped') continue;
      if (isThere) throw new UniqueViolation();
      transaction.rows.set(rowKey(row), row);
      transaction.added.push(row);
    }
  }

  override async repeatingStreams(handle: Transaction, events: EmittedEvent[]): Promise<Set<string>> {
    await this.step('repeating');
    const rows = [...memory(handle).rows.values()];
    const repeats = (event: EmittedEvent) => rows.some((row) => sameStream(row, event) && row.emitId === event.emitId);
    return new Set(events.filter(repeats).map(({ emitterId, stream }) => streamKey(emitterId, stream)));
  }

  override async trim(handle: Transaction, streams: StreamKey[]): Promise<void> {
    if (streams.length === 0) return;
    await this.step('trim');
    const transaction = memory(handle);
    for (const { emitterId, stream } of streams) {
      const rows = streamRows(transaction.rows.values(), emitterId, stream);
      const surplus = this.mutant === 'trim by count only' ? Math.min(rows.length, KEPT_EVENTS) : Math.max(0, rows.length - KEPT_EVENTS);
      for (const row of rows.slice(0, surplus)) this.removeRow(transaction, row);
    }
  }

  /** The simulation has one custom stream. */
  override async limitStreams(): Promise<boolean> {
    return false;
  }

  override async kept(handle: Transaction, streams: StreamKey[]): Promise<(KeptEvent & StreamKey)[]> {
    await this.step('kept');
    return streams.flatMap(({ emitterId, stream }) => streamRows(memory(handle).rows.values(), emitterId, stream));
  }

  override async remove(handle: Transaction, events: (StreamKey & { place: EventPlace })[]): Promise<void> {
    if (events.length === 0) return;
    await this.step('remove');
    for (const event of events) this.removeRow(memory(handle), event);
  }

  override async removeRanges(handle: Transaction, _: EmitterId, ranges: DeletedRange[], except: Stream[]): Promise<string[]> {
    const withdrawn: string[] = [];
    for (const range of ranges) {
      await this.step('remove range');
      withdrawn.push(...this.removeRange(memory(handle), range, except));
    }
    return withdrawn;
  }

  private removeRange(transaction: MemoryTransaction, range: DeletedRange, except: Stream[]): string[] {
    const withdrawn: string[] = [];
    const streams = new Set([...transaction.rows.values()].filter((row) => row.emitterId === range.emitterId).map((row) => row.stream));
    for (const stream of streams) {
      if (except.includes(stream) || (range.stream !== null && !coversStream(range.stream, stream))) continue;
      const rows = streamRows(transaction.rows.values(), range.emitterId, stream);
      const isIn = ({ place }: Row) => isInRange(range, stream, place);
      const surplus = this.mutant === 'no trim before a deletion' ? 0 : Math.max(0, rows.length - KEPT_EVENTS);
      rows.forEach((row, index) => (index < surplus || isIn(row)) && this.removeRow(transaction, row));
      if (stream !== WAITING_STREAM) continue;
      const shown = this.mutant === 'surplus of $in withdrawn' ? rows : rows.slice(surplus);
      withdrawn.push(...shown.filter(isIn).map(({ emitId }) => emitId));
    }
    return withdrawn;
  }

  override async noteDeletions(): Promise<void> {
    // queries of deletions are tested on PostgreSQL
  }

  override async withdraw(handle: Transaction, emits: WithdrawnEmit[]): Promise<void> {
    if (emits.length === 0) return;
    await this.step('withdraw');
    const keys = emits.map(({ emitterId, emitId }) => `${emitterId} ${emitId}`);
    if (this.mutant === 'withdrawn before the commit') for (const key of keys) this.tables.withdrawn.add(key);
    else memory(handle).withdrawn.push(...keys);
  }

  private removeRow(transaction: MemoryTransaction, row: StreamKey & { place: EventPlace }): void {
    if (transaction.rows.delete(rowKey(row))) transaction.removed.add(rowKey(row));
  }

  private commit({ added, removed, withdrawn, moved }: MemoryTransaction): void {
    for (const key of removed) this.tables.events.delete(key);
    for (const row of added) if (!removed.has(rowKey(row))) this.tables.events.set(rowKey(row), row);
    for (const key of withdrawn) this.tables.withdrawn.add(key);
    for (const [partition, position] of moved) this.tables.positions.set(partition, position);
  }

  private end(transaction: MemoryTransaction): void {
    this.open.delete(transaction);
    for (const [partition, holder] of this.tables.locks) if (holder === transaction) this.tables.locks.delete(partition);
  }
}

const memory = (transaction: Transaction): MemoryTransaction => transaction as unknown as MemoryTransaction;
