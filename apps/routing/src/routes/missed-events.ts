import { Inject, Injectable } from '@nestjs/common';
import { type EmitterEvents, EVENTS_TOPIC, findEmittersBetween, SluiceError } from '#contracts';
import { EmitterDirectory } from '#emitters';
import { errorReport, eventIdOf, eventPlace } from '#events';
import { Messages, type MissedRecords, Publisher, type Task } from '#messaging';
import { LOG, type Log } from '#observability';
import { reportEmitId } from '../error-records.js';

const CODE = 'EventsNotDelivered';
/** The event store reads all events: 100 million take a minute or so. */
const FIND_WITHIN_MS = 600_000;
/** While the report is tried, deletions of events of its partition are not done. */
const MAX_TRIES = 3;
/** Reports that are made and sent together: each has a kilobyte or so. */
const SENT_AT_ONCE = 1000;

/** Reports on `$errors` that retention deleted events before they were delivered: once for each emitter of which the event store still has some. */
@Injectable()
export class MissedEvents {
  constructor(
    private readonly messages: Messages,
    private readonly publisher: Publisher,
    private readonly emitters: EmitterDirectory,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /**
   * Reports them. A repeated report is the same emit. It is given up if the event store has failed or taken too long several times; while it is unavailable,
   * nothing is given up.
   */
  task(missed: MissedRecords): Task {
    let tries = 0;
    const run = async (): Promise<void> => {
      const affected = await this.find(missed).catch((error: unknown) => {
        const isAway = error instanceof SluiceError && error.code === 'unavailable';
        if (isAway || ++tries < MAX_TRIES) throw error;
        this.log.error({ ...missed, err: error }, 'events.missed-not-reported');
      });
      if (!affected) return;
      for (let start = 0; start < affected.length; start += SENT_AT_ONCE)
        await this.send(missed, affected.slice(start, start + SENT_AT_ONCE));
      this.log.warn({ ...missed, emitters: affected.length }, 'events.missed-reported');
    };
    return { lane: `missed ${missed.partition}`, run };
  }

  private find({ partition, from, to, since }: MissedRecords): Promise<EmitterEvents[]> {
    const part = { partition, from_offset: from, to_offset: to, since_ms: since };
    return this.messages.request(findEmittersBetween, part, { account: null, key: String(partition), timeoutMs: FIND_WITHIN_MS });
  }

  private async send({ partition, from, since }: MissedRecords, affected: EmitterEvents[]): Promise<void> {
    const emitters = await this.emitters.find(affected.map(({ emitter_id }) => emitter_id));
    // the place of the first record that was missed
    const place = eventPlace({ clock: since, offset: from, partition });
    const ts = new Date().toISOString();
    const reports = affected.map(({ emitter_id, events }) => ({
      topic: EVENTS_TOPIC,
      ...errorReport({
        emitterId: emitter_id,
        code: CODE,
        message: `${events} events were not delivered, because Kafka deleted them while routing was down. They are in the event history.`,
        ts,
        emitId: reportEmitId(`${CODE} ${emitter_id}`, place),
        originalEvent: { $truncated: true },
        context: { id: eventIdOf(place), ts },
        ownerId: emitters.get(emitter_id)?.owner_id,
      }),
    }));
    await this.publisher.send(reports);
  }
}
