import { LRUCache } from 'lru-cache';
import { EVENTS_TOPIC, isId, type UserId } from '#contracts';
import { type Emitter, EmitterDirectory } from '#emitters';
import { errorReport, ERRORS_STREAM, eventIdOf, type EventToProduce, type MalformedRecord, originalValue } from '#events';
import { deadLetterRecord, type LogRecord, type Sender, type Task } from '#messaging';
import { LimitedWarnings } from '#observability';
import { reportEmitId } from '../error-records.js';
import { once } from './once.js';
import { SendLane } from './triggers.js';

const CODE = 'MalformedEvent';

/** The malformed records of an emitter that are reported in a minute: a producer of another format must not fill its `$errors`. */
const REPORTED_PER_MINUTE = 100;

/** The emitters of the malformed records in a batch, by id. */
type Emitters = () => Promise<Map<string, Pick<Emitter, 'owner_id'>>>;

/** Copies each malformed record to the dead-letter topic, and reports it on the `$errors` of the emitter that it names. */
export class MalformedRecords {
  private readonly copies: SendLane;
  /** A separate lane, because the owner of the emitter may have to be looked up in the catalog. */
  private readonly reports: SendLane;
  private readonly counts = new MalformedCounts();
  private readonly warnings: LimitedWarnings;

  constructor(
    sender: Sender,
    private readonly emitters: EmitterDirectory,
  ) {
    this.copies = new SendLane(sender, { lane: 'malformed' });
    this.reports = new SendLane(sender, { lane: 'malformed-reports' });
    this.warnings = new LimitedWarnings(sender.log, 'event.malformed');
  }

  /** Those of a batch. Returns a function that makes the tasks of one of them. */
  batch(all: MalformedRecord[]): (record: LogRecord, malformed: MalformedRecord) => Task[] {
    const emitters = this.emittersOf(all);
    return (record, malformed) => this.tasks(record, malformed, emitters);
  }

  /** Looks up the emitters at once, when the first report is sent; again after a failure. */
  private emittersOf(malformed: MalformedRecord[]): Emitters {
    const ids = malformed.flatMap(({ emitterId }) => emitterId ?? []);
    const byKind = Map.groupBy(ids, (id) => isId('workflow', id));
    return once(async () => {
      const sources = await this.emitters.find(byKind.get(false) ?? []);
      // the reports of all accounts share a lane: it does not wait until the catalog has read a registration
      const workflows = await this.emitters.known(byKind.get(true) ?? []);
      return new Map([...sources, ...workflows]);
    });
  }

  private tasks(record: LogRecord, malformed: MalformedRecord, emitters: Emitters): Task[] {
    const { emitterId, reason } = malformed;
    const copy = this.copies.task([deadLetterRecord('routing', record, reason)]);
    const count = this.counts.count(malformed);
    if (count > REPORTED_PER_MINUTE) return [copy];
    this.warnings.warn({ partition: record.partition, offset: record.offset, key: record.key?.slice(0, 100), reason });
    // a report about a report would be one, too
    if (emitterId === undefined || record.header('ce_type') === ERRORS_STREAM) return [copy];
    const report = async () => {
      const ownerId = (await emitters()).get(emitterId)?.owner_id;
      const isLast = count === REPORTED_PER_MINUTE;
      return [{ topic: EVENTS_TOPIC, ...reportOf(record, { ...malformed, emitterId }, { ownerId, isLast }) }];
    };
    return [copy, this.reports.task(report)];
  }
}

/** Counts the malformed records of each emitter, in minutes that begin with the first one. */
class MalformedCounts {
  private readonly counts = new LRUCache<string, { records: number }>({ max: 10_000, ttl: 60_000 });

  /** Returns the number of this one in its minute. */
  count({ emitterId }: Pick<MalformedRecord, 'emitterId'>): number {
    const key = emitterId ?? '';
    const known = this.counts.get(key);
    if (known) return (known.records += 1);
    this.counts.set(key, { records: 1 });
    return 1;
  }
}

/** A repeated report is the same emit. `isLast`: those that follow in this minute are not reported. */
function reportOf(
  record: LogRecord,
  { emitterId, place, reason }: Required<MalformedRecord>,
  { ownerId, isLast }: { ownerId: UserId | undefined; isLast: boolean },
): EventToProduce {
  const ts = new Date(place.ms).toISOString();
  return errorReport({
    emitterId,
    code: CODE,
    message: isLast ? `${reason}; more malformed records follow, which are not reported for a minute` : reason,
    ts,
    emitId: reportEmitId(CODE, place),
    originalEvent: originalValue(record.value),
    context: { event_id: eventIdOf(place) },
    ownerId,
  });
}
