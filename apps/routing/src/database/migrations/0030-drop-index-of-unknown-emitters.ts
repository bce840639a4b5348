import { Migration } from '#database';

/** For an hour on the branch `main`, it created an index. Its name remains, because databases of that hour would otherwise count as those of a newer version. */
export class IndexPostponedEventsOfUnknownEmitters1799078400000 extends Migration {
  readonly sql = 'DROP INDEX IF EXISTS postponed_event_of_unknown';
}
