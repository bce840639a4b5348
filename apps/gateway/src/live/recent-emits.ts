import type { Stream } from '#events';

/** As many as the store keeps: it skips an emit whose id is among them. */
const REMEMBERED = 100;

/** The last emit ids that a client received, so that a producer's retry, which appends an emit to the log twice, is sent once. */
export class RecentEmits {
  private readonly ids = new Set<string>();

  /** Adds an emit id; returns whether it was new. An emit id is unique within its stream. */
  add(stream: Stream, emitId: string): boolean {
    const id = `${stream} ${emitId}`;
    if (this.ids.has(id)) return false;
    this.ids.add(id);
    if (this.ids.size > REMEMBERED) for (const oldest of this.ids.values()) return this.ids.delete(oldest);
    return true;
  }
}
