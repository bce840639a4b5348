import type { WebhookId } from '#contracts';
import { Breaker } from './breaker.js';
import type { Delivery } from './delivery.js';

/** A delivery in a lane whose attempt has not begun. */
export interface Waiting {
  delivery: Delivery;
  /** It's taken care of: parked together with others. */
  parked: boolean;
  /** The attempt is over, and this is left to do: when the database was away, it's all that the lane's next try does. */
  rest?: () => Promise<void>;
}

/** How fast an old duration is forgotten. */
const SMOOTHING = 0.2;

/** What this process knows of the way to one webhook. */
export class Line {
  readonly breaker = new Breaker();
  /** In the order of arrival. */
  readonly waiting = new Set<Waiting>();
  /** A parking of those that wait, under way. */
  parking: Promise<void> | undefined;
  /** Attempts under way, and others that hold on to what is known here. */
  held = 0;
  /** Of an attempt, in ms: the smoothed mean. */
  duration = 0;

  constructor(readonly webhookId: WebhookId) {}

  took(durationMs: number): void {
    this.duration = this.duration === 0 ? durationMs : this.duration + SMOOTHING * (durationMs - this.duration);
  }

  /** Nothing is known that a new one wouldn't know. */
  get idle(): boolean {
    return this.held === 0 && this.waiting.size === 0 && this.parking === undefined && this.breaker.untroubled;
  }
}

/** The lines of this process. */
export class Lines {
  private readonly lines = new Map<WebhookId, Line>();

  of(webhookId: WebhookId): Line {
    let line = this.lines.get(webhookId);
    if (!line) this.lines.set(webhookId, (line = new Line(webhookId)));
    return line;
  }

  [Symbol.iterator](): Iterator<Line> {
    return this.lines.values();
  }

  /** Forgets lines about which there is nothing to know. */
  tidy(): void {
    for (const line of this.lines.values()) if (line.idle) this.lines.delete(line.webhookId);
  }
}
