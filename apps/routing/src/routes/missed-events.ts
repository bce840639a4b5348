import { Inject, Injectable } from '@nestjs/common';
import { type EmitterEvents, EVENTS_TOPIC, findEmittersBetween } from '#contracts';
import { EmitterDirectory } from '#emitters';
import { errorReport, eventIdOf, eventPlace } from '#events';
import { Messages, type MissedRecords, Publisher, type Task } from '#messaging';
import { LOG, type Log } from '#observability';
import { reportEmitId } from '../error-records.js';

const CODE = 'EventsNotDelivered';

/** Reports on `$errors` that retention deleted events before they were delivered: once for each emitter of which the event store still has some. */
@Injectable()
export class MissedEvents {
  constructor(
    private readonly messages: Messages,
    private readonly publisher: Publisher,
    private readonly emitters: EmitterDirectory,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** Reports them. A repeated report is the same emit. */
  task(missed: MissedRecords): Task {
    return { lane: `missed ${missed.partition}`, run: () => this.report(missed) };
  }

  private async report({ partition, from, to, since }: MissedRecords): Promise<void> {
    const part = { partition, from_offset: from, to_offset: to, since_ms: since };
    const affected = await this.messages.request(findEmittersBetween, part, { key: String(partition) });
    const emitters = await this.emitters.find(affected.map(({ emitter_id }) => emitter_id));
    // the place of the first record that was missed
    const place = eventPlace({ clock: since, offset: from, partition });
    const ts = new Date().toISOString();
    const reports = affected.map(({ emitter_id, events }: EmitterEvents) => ({
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
    this.log.warn({ ...part, emitters: affected.length }, 'events.missed-reported');
  }
}
