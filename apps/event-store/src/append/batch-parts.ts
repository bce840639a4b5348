import { emitterOf, isDeletion } from '#events';
import { Batch } from '#messaging';

/** The emitters from which a transaction deletes ranges of events: for each, it looks in up to a thousand streams, and meanwhile other batches wait. */
const EMITTERS_TOGETHER = 100;

/** The batch in parts, each for a transaction. Almost always, it is the only part. */
export function* partsOf({ partition, records, before, after }: Batch): Generator<Batch> {
  const emitters = new Set<string | undefined>();
  let [start, from] = [0, before];
  for (const [index, record] of records.entries()) {
    if (!isDeletion(record)) continue;
    emitters.add(emitterOf(record));
    if (emitters.size < EMITTERS_TOGETHER || index + 1 === records.length) continue;
    const to = { offset: record.offset + 1, clock: record.clock, timestamp: record.timestamp };
    yield new Batch(partition, records.slice(start, index + 1), from, to);
    [start, from] = [index + 1, to];
    emitters.clear();
  }
  yield new Batch(partition, records.slice(start), from, after);
}
