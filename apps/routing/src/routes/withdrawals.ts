import { Inject, Injectable } from '@nestjs/common';
import { EVENTS_TOPIC } from '#contracts';
import { type DeletedRange, logPlaceOf } from '#events';
import { Consumers, type Task } from '#messaging';
import { LOG, type Log } from '#observability';
import { ParkedDeliveriesRepository } from '../deliveries/store/parked-deliveries.repository.js';
import { EVENTS_GROUP } from './events-group.js';
import { PostponedEvents } from './postponed-events.js';

/** Until the next look: the first pause and the longest. */
const LOOK_MS = { first: 20, longest: 2000 };

/** Deleted events are not delivered by retries. */
@Injectable()
export class Withdrawals {
  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly postponed: PostponedEvents,
    private readonly parked: ParkedDeliveriesRepository,
    private readonly consumers: Consumers,
  ) {}

  /**
   * Withdraws what waits of the deleted events at once, and again until each event before the deletion is done: first attempts that are in progress or wait
   * for their lanes may still fail, and are parked then. A crash meanwhile repeats the deletion.
   */
  task(range: DeletedRange): Task {
    return {
      lane: `deleted ${range.emitterId}`,
      run: async (release) => {
        let [events, deliveries] = [0, 0];
        const isComplete = this.progressBefore(range);
        for (let pause = LOOK_MS.first; ; pause = Math.min(2 * pause, LOOK_MS.longest)) {
          // before: what is parked after it would be missed
          const isLast = isComplete();
          events += await this.postponed.withdraw(range);
          deliveries += await this.parked.withdraw(range);
          if (isLast) break;
          release();
          await new Promise((resolve) => setTimeout(resolve, pause));
          // the record stays undone, and its next owner repeats the deletion
          if (this.consumers.isStopping(EVENTS_GROUP)) throw new Error('routing stops before the events that were deleted are done');
        }
        if (events + deliveries > 0) this.log.info({ emitter_id: range.emitterId, events, deliveries }, 'deliveries.withdrawn');
      },
    };
  }

  /** Returns whether the events before the deletion are done here, each time it is called. */
  private progressBefore({ emitterId, place }: DeletedRange): () => boolean {
    const { partition, offset } = logPlaceOf(place);
    let reached = 0;
    return () => {
      const position = this.consumers.positionsOf(EVENTS_GROUP).find((each) => each.topic === EVENTS_TOPIC && each.partition === partition);
      // another replica has the partition, or it is read again from an earlier position: so is the deletion
      if (!position || position.offset < reached) return true;
      reached = position.offset;
      return position.offset >= offset && !this.postponed.isInProgress(emitterId, place);
    };
  }
}
