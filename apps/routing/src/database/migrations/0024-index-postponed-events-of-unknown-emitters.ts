import { Migration } from '#database';

export class IndexPostponedEventsOfUnknownEmitters1799078400000 extends Migration {
  readonly sql = `
    -- there are hardly ever any; the rest of the table can be large
    CREATE INDEX postponed_event_of_unknown ON postponed_event (emitter_id) WHERE owner_id = ''`;
}
