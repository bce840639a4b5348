import { Migration } from '#database';

export class GiveUpInBatches1796256000000 extends Migration {
  readonly sql = `
    -- the deliveries that wait for it are being given up, because its receiver has failed for too long or is gone
    ALTER TABLE webhook ADD COLUMN giving_up boolean NOT NULL DEFAULT false;
    -- "the next deliveries of an emitter's events": those of deleted events are not among them
    CREATE INDEX parked_delivery_of_emitter ON parked_delivery (emitter_id, ms, seq, webhook_id) WHERE body <> '';`;
}
