import { Migration } from '#database';

export class IndexFreshDeliveriesOfEmitters1799164800003 extends Migration {
  readonly sql = `
    -- "the emitters with deliveries that were never attempted, and the first of each": those of one emitter may be a million
    CREATE INDEX parked_delivery_fresh_of_emitter ON parked_delivery (webhook_id, emitter_id, ms, seq) WHERE fresh AND due_at IS NOT NULL;`;
}
