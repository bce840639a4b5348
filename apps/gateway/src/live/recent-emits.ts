import type { Stream } from '#events';

/** As many as the store keeps: it doesn't store an emit again that stands among them. */
const REMEMBERED = 100;

/** The emit ids that a client was shown last, so that a producer's retry, which puts one emit into the log twice, is shown once. */
export class RecentEmits {
  private readonly ids = new Set<string>();

  /** Whether it's new; then it's remembered. An emit id is unique within its stream. */
  add(stream: Stream, emitId: string): boolean {
    const id = `${stream} ${emitId}`;
    if (this.ids.has(id)) return false;
    this.ids.add(id);
    if (this.ids.size > REMEMBERED) for (const oldest of this.ids.values()) return this.ids.delete(oldest);
    return true;
  }
}
