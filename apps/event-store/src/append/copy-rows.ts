import { type EmittedEvent, truncateEvent, WHOLE_UP_TO } from '#events';
import type { Connection } from 'pg';
import type { Transaction } from '#database';

/** The columns, in the order in which `copyRows` writes them. */
export const COPIED_COLUMNS = 'ms, seq, emitter_id, stream, emit_id, event, truncated, summary, item_id, item_ts';

const COLUMNS = 10;
/** PostgreSQL, "File Formats, Binary Format": signature, flags, no header extension. */
const HEADER = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
const NULL = -1;
const NO_MORE_ROWS = -1;
const TWO_POW_32 = 2 ** 32;

/** The rows of events in the binary format of COPY. */
export function copyRows(events: EmittedEvent[]): Buffer {
  const truncated = events.map(({ json }) => (json.length > WHOLE_UP_TO ? truncateEvent(json) : undefined));
  const rows = new Rows(events.reduce((size, event, index) => size + sizeOfRow(event, truncated[index]), HEADER.length + 2));
  rows.bytes(HEADER);
  events.forEach((event, index) => {
    rows.int16(COLUMNS);
    rows.bigint(event.place.ms);
    rows.bigint(event.place.seq);
    rows.text(event.emitterId);
    rows.text(event.stream);
    rows.text(event.emitId);
    rows.bytea(event.json);
    rows.bytea(truncated[index]);
    rows.text(event.summary);
    rows.text(event.itemId);
    rows.bigint(event.itemTs);
  });
  rows.int16(NO_MORE_ROWS);
  return rows.written();
}

/** An upper bound. */
function sizeOfRow(event: EmittedEvent, truncated: Buffer | undefined): number {
  const { emitterId, stream, emitId, json, summary, itemId } = event;
  // a UTF-16 unit takes 3 bytes of UTF-8 at most
  const text = emitterId.length + 3 * (stream.length + emitId.length + (summary?.length ?? 0) + (itemId?.length ?? 0));
  return 2 + COLUMNS * 4 + 3 * 8 + text + json.length + (truncated?.length ?? 0);
}

class Rows {
  private readonly buffer: Buffer;
  private at = 0;

  constructor(size: number) {
    this.buffer = Buffer.allocUnsafe(size);
  }

  written(): Buffer {
    return this.buffer.subarray(0, this.at);
  }

  int16(value: number): void {
    this.at = this.buffer.writeInt16BE(value, this.at);
  }

  bytes(bytes: Buffer): void {
    this.buffer.set(bytes, this.at);
    this.at += bytes.length;
  }

  bytea(bytes: Buffer | undefined): void {
    this.at = this.buffer.writeInt32BE(bytes?.length ?? NULL, this.at);
    if (bytes) this.bytes(bytes);
  }

  text(text: string | undefined): void {
    const lengthAt = this.at;
    this.at += 4;
    const length = text === undefined ? NULL : this.buffer.write(text, this.at, 'utf8');
    this.buffer.writeInt32BE(length, lengthAt);
    this.at += Math.max(length, 0);
  }

  /** A whole number up to 2^53, without the cost of a BigInt. */
  bigint(value: number | undefined): void {
    this.at = this.buffer.writeInt32BE(value === undefined ? NULL : 8, this.at);
    if (value === undefined) return;
    this.at = this.buffer.writeInt32BE(Math.floor(value / TWO_POW_32), this.at);
    this.at = this.buffer.writeUInt32BE(value >>> 0, this.at);
  }
}

/** Members of a connection that its types do not declare. */
interface CopyConnection extends Connection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

/** The server processes a message when it is complete. With several messages, both sides work at the same time. */
const MESSAGE_BYTES = 256 * 1024;

/**
 * Sends the data of a `COPY … FROM STDIN`; resolves when the server has stored it. Rejects like a query, also if the connection breaks in the middle.
 * The transaction can then be rolled back.
 */
export function copyIn(transaction: Transaction, statement: string, data: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.client.query(new CopyIn(statement, data, resolve, reject));
  });
}

/** A query as the driver sees it: the driver calls a `handle…` method for each message of the server. */
class CopyIn {
  private failed = false;

  constructor(
    private readonly statement: string,
    private readonly data: Buffer,
    private readonly resolve: () => void,
    private readonly reject: (error: Error) => void,
  ) {}

  submit(connection: Connection): void {
    connection.query(this.statement);
  }

  handleCopyInResponse(connection: CopyConnection): void {
    for (let at = 0; at < this.data.length; at += MESSAGE_BYTES) connection.sendCopyFromChunk(this.data.subarray(at, at + MESSAGE_BYTES));
    connection.endCopyFrom();
  }

  handleCommandComplete(): void {}

  handleError(error: Error): void {
    this.failed = true;
    this.reject(error);
  }

  handleReadyForQuery(): void {
    if (!this.failed) this.resolve();
  }
}
