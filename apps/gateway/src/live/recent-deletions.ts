import { comparePlaces, type DeletedRange, type EventPlace, isInRange, type Stream } from '#events';

/** The number of deletions that are known exactly. They need 30 KB, and an account can have streams of 2000 emitters. */
const KEPT = 100;

/**
 * The last deletions of an emitter, once for all of its live streams: an emit with the id of a deleted event is a new event. So a stream looks for a deletion
 * when an id repeats, which is rare, and a deletion costs nothing, however many streams there are.
 *
 * Of older deletions, only the place of the last one is known. An event before that counts as deleted: a repeat may be sent, but no event is missing.
 */
export class RecentDeletions {
  private readonly kept: Pick<DeletedRange, 'place' | 'stream' | 'start' | 'end'>[] = [];
  private droppedUntil: EventPlace | undefined;

  add({ place, stream, start, end }: DeletedRange): void {
    this.kept.push({ place, stream, start, end });
    if (this.kept.length > KEPT) this.droppedUntil = this.kept.shift()?.place;
  }

  /** Whether the event was deleted before another one was emitted at `later`. */
  isDeleted({ stream, place }: { stream: Stream; place: EventPlace }, later: EventPlace): boolean {
    if (this.droppedUntil && comparePlaces(place, this.droppedUntil) < 0) return true;
    const isBetween = (at: EventPlace) => comparePlaces(place, at) < 0 && comparePlaces(at, later) < 0;
    return this.kept.some((deletion) => isBetween(deletion.place) && isInRange(deletion, stream, place));
  }
}
