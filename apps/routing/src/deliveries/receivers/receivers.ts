import type { WebhookId } from '#contracts';
import { Breaker } from './breaker.js';
import type { Delivery } from '../delivery.js';

/** A delivery in a lane whose attempt has not begun. */
export interface Waiting {
  delivery: Delivery;
  /** It's taken care of: parked together with others. */
  parked: boolean;
  /** The attempt is over, and this is left to do: when the database was away, it's all that the lane's next try does. */
  rest?: () => Promise<void>;
}

/** How fast old durations are forgotten: those of one webhook, and of all. */
const SMOOTHING = { own: 0.2, all: 0.01 };

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

  constructor(
    readonly webhookId: WebhookId,
    private readonly all: { duration: number },
  ) {}

  took(durationMs: number): void {
    this.duration = smoothed(this.duration, durationMs, SMOOTHING.own);
    this.all.duration = smoothed(this.all.duration, durationMs, SMOOTHING.all);
  }

  /** Nothing is known that a new one wouldn't know. */
  get idle(): boolean {
    return this.held === 0 && this.waiting.size === 0 && this.parking === undefined && this.breaker.untroubled;
  }
}

const smoothed = (mean: number, value: number, share: number): number => (mean === 0 ? value : mean + share * (value - mean));

/** The lines of this process. */
export class Lines {
  private readonly lines = new Map<WebhookId, Line>();
  private readonly all = { duration: 0 };

  /** Of an attempt to any webhook, in ms: the smoothed mean. */
  get duration(): number {
    return this.all.duration;
  }

  of(webhookId: WebhookId): Line {
    let line = this.lines.get(webhookId);
    if (!line) this.lines.set(webhookId, (line = new Line(webhookId, this.all)));
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
