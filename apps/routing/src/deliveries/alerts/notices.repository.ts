import { Injectable } from '@nestjs/common';
import type { WebhookId } from '#contracts';
import { Database } from '#database';
import type { OutgoingRecord } from '#messaging';
import { addToOutbox } from '#outbox';

@Injectable()
export class NoticesRepository {
  constructor(private readonly database: Database) {}

  /** Sends the record unless one was sent for this webhook within the time. Whether it did. */
  async sendOnceIn(periodMs: number, webhookId: WebhookId, record: OutgoingRecord): Promise<boolean> {
    return this.database.transaction(async (transaction) => {
      // SQL: the database's clock decides, in the statement that locks the row
      const { rowCount } = await transaction.query(
        `UPDATE webhook SET failure_told_at = now()
         WHERE id = $1 AND (failure_told_at IS NULL OR failure_told_at < now() - $2 * interval '1 ms')`,
        [webhookId, periodMs],
      );
      if (rowCount === 1) await addToOutbox(transaction, [record]);
      return rowCount === 1;
    });
  }

  async send(record: OutgoingRecord): Promise<void> {
    await this.database.transaction((transaction) => addToOutbox(transaction, [record]));
  }
}
