import { Inject, Injectable } from '@nestjs/common';
import { type EmitterId, EVENTS_TOPIC, type UserId } from '#contracts';
import { type DeletedRange, eventPlace, logPlaceOf } from '#events';
import { Consumers, type Task } from '#messaging';
import { LOG, type Log } from '#observability';
import { Dispatcher } from '../deliveries/direct/dispatcher.js';
import { ParkedDeliveriesRepository } from '../deliveries/store/parked-deliveries.repository.js';
import { tenantOfDeletions } from './event-tasks.js';
import { EVENTS_GROUP } from './events-group.js';
import { PostponedEvents } from './postponed-events.js';
import { PostponedEventsRepository } from './postponed-events.repository.js';
import { UnknownEventsRepository } from './unknown-events.repository.js';

/** Until the next look: the first pause and the longest. */
const LOOK_MS = { first: 20, longest: 2000 };

/** A deletion whose events may not be done yet. */
interface Withdrawal {
  range: DeletedRange;
  /** The position of its partition at the last look. */
  reached: number;
}

/** Cancels what waits of deleted events: postponed events and those of unknown emitters, parked deliveries and deliveries that wait for their first attempt. */
@Injectable()
export class Withdrawals {
  /** By emitter. */
  private readonly waiting = new Map<EmitterId, Set<Withdrawal>>();
  /** The deletions whose records are not done, by `seq`: they do not wait for each other, because a deletion parks nothing. */
  private readonly undoneDeletions = new Set<number>();

  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly postponedEvents: PostponedEvents,
    private readonly postponed: PostponedEventsRepository,
    private readonly unknown: UnknownEventsRepository,
    private readonly parked: ParkedDeliveriesRepository,
    private readonly dispatcher: Dispatcher,
    private readonly consumers: Consumers,
  ) {}

  /**
   * Withdraws what waits of the deleted events at once, and again until each event before the deletion is done: first attempts that are in progress may still
   * fail, and are parked then. A crash meanwhile repeats the deletion. Each look is for all deletions of the emitter that wait.
   *
   * @param owner of the emitter, if it is known
   */
  task(range: DeletedRange, owner?: UserId): Task {
    const { emitterId, place } = range;
    const withdrawal = { range, reached: 0 };
    const others = this.waiting.get(emitterId);
    if (others) others.add(withdrawal);
    else this.waiting.set(emitterId, new Set([withdrawal]));
    this.undoneDeletions.add(place.seq);
    const end = () => {
      this.forget(withdrawal);
      this.undoneDeletions.delete(place.seq);
    };
    return {
      lane: `deleted ${emitterId}`,
      ...(owner ? { group: tenantOfDeletions(owner), tenant: tenantOfDeletions(owner) } : { tenant: 'deletions of unknown emitters' }),
      drop: end,
      run: async (release) => {
        for (let pause = LOOK_MS.first; this.isWaiting(withdrawal); pause = Math.min(2 * pause, LOOK_MS.longest)) {
          await this.look(emitterId);
          if (!this.isWaiting(withdrawal)) break;
          release();
          await new Promise((resolve) => setTimeout(resolve, pause));
          // the record stays undone, and its next owner repeats the deletion
          if (this.consumers.isStopping(EVENTS_GROUP)) throw new Error('routing stops before the events that were deleted are done');
        }
        end();
      },
    };
  }

  private isWaiting(withdrawal: Withdrawal): boolean {
    return this.waiting.get(withdrawal.range.emitterId)?.has(withdrawal) ?? false;
  }

  private forget(withdrawal: Withdrawal): void {
    const { emitterId } = withdrawal.range;
    const left = this.waiting.get(emitterId);
    left?.delete(withdrawal);
    if (left?.size === 0) this.waiting.delete(emitterId);
  }

  private async look(emitterId: EmitterId): Promise<void> {
    const withdrawals = [...(this.waiting.get(emitterId) ?? [])];
    // before: what is parked after it would be missed
    const complete = this.completeOf(withdrawals);
    const ranges = withdrawals.map(({ range }) => range);
    // of all events before the deletion, because this process reads its partition
    const waiting = this.dispatcher.withdraw(ranges);
    // first: its events may become postponed ones meanwhile
    const unknown = await this.unknown.withdraw(ranges);
    const [events, deliveries] = [unknown + (await this.postponed.withdraw(ranges)), waiting + (await this.parked.withdraw(ranges))];
    for (const withdrawal of complete) this.forget(withdrawal);
    if (events + deliveries > 0) this.log.info({ emitter_id: emitterId, events, deliveries }, 'deliveries.withdrawn');
  }

  /** Those before which every event is done here. */
  private completeOf(withdrawals: Withdrawal[]): Withdrawal[] {
    const concerned = new Set(withdrawals.map(({ range }) => logPlaceOf(range.place).partition));
    const positions = this.consumers
      .positionsOf(EVENTS_GROUP)
      .filter(({ topic, partition }) => topic === EVENTS_TOPIC && concerned.has(partition))
      .map(({ partition, offset }) => ({ partition, offset, event: this.firstUndoneEvent(partition) }));
    const partitions = new Map(positions.map((position) => [position.partition, position]));
    return withdrawals.filter((withdrawal) => {
      const { emitterId, place } = withdrawal.range;
      const { partition, offset } = logPlaceOf(place);
      const position = partitions.get(partition);
      // another replica has the partition, or it is read again from an earlier position: so is the deletion
      if (!position || position.offset < withdrawal.reached) return true;
      withdrawal.reached = position.offset;
      return offset <= position.event && !this.postponedEvents.isInProgress(emitterId, place);
    });
  }

  /** The offset of the first record of a partition that is neither done nor a deletion. */
  private firstUndoneEvent(partition: number): number {
    const isDeletion = (offset: number) => this.undoneDeletions.has(eventPlace({ clock: 0, offset, partition }).seq);
    const undone = this.consumers.undoneOf(EVENTS_GROUP, { topic: EVENTS_TOPIC, partition });
    return undone.find((offset) => !isDeletion(offset)) ?? Infinity;
  }
}
