import { Migration } from '#database';

export class IndexPostponedEventsOfPartition1797811200002 extends Migration {
  readonly sql = `
    -- "the first events of an account in a partition"; \`seq\` is the offset times 4096, plus the partition
    CREATE INDEX postponed_event_of_partition ON postponed_event (owner_id, (seq % 4096), ms, seq);`;
}
