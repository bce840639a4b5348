import type { Connection } from 'pg';
import type { Transaction } from '#database';

/** What a connection has beside what its types tell. */
interface CopyConnection extends Connection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

/** The server begins with a message when it has all of it: several of them let both sides work at once. */
const MESSAGE_BYTES = 256 * 1024;

/**
 * Sends the data of a `COPY … FROM STDIN`; resolves when the server has taken it in. Rejects as a query does, also when
 * the connection breaks in the middle, after which the transaction can be rolled back.
 */
export function copyIn(transaction: Transaction, statement: string, data: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.client.query(new CopyIn(statement, data, resolve, reject));
  });
}

/** The driver's idea of a query: it calls the `handle…` methods as messages of the server come in. */
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
