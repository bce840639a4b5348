import { Migration } from '#database';

export class DeleteWebhooksInBatches1797984000010 extends Migration {
  readonly sql = `
    -- a deleted webhook of which parked deliveries are left
    CREATE TABLE deleted_webhook (
      webhook_id text COLLATE "C" PRIMARY KEY,
      owner_id   text COLLATE "C" NOT NULL
    );`;
}
