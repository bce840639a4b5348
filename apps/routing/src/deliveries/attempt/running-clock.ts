import { Injectable, type OnApplicationShutdown } from '@nestjs/common';

const TICK_MS = 100;
/** A tick that is this late was not delayed by load. */
const STILL_MS = 1000;

/**
 * A clock that stops while this process stands still: because it was stopped (SIGSTOP), because its virtual machine was paused, or because its event
 * loop was blocked. Responses that arrived meanwhile wait in their sockets, so this time does not count against receivers.
 */
@Injectable()
export class RunningClock implements OnApplicationShutdown {
  private ticker: NodeJS.Timeout | undefined;
  private readonly everyTick = new Set<() => boolean>();
  private isRead = false;
  private seenAt = performance.now();
  private stoodStillMs = 0;

  /** The time in which this process ran, in ms. Only differences are meaningful, and only until the clock stops ticking, which it does while nobody needs it. */
  now(): number {
    this.isRead = true;
    this.ticker ??= setInterval(() => this.tick(), TICK_MS).unref();
    const now = performance.now();
    // the caller may be the first to run after the process stood still
    if (now - this.seenAt > STILL_MS) this.stoodStillMs += now - this.seenAt - TICK_MS;
    this.seenAt = now;
    return now - this.stoodStillMs;
  }

  /**
   * Calls back ten times per second while the clock ticks, until the returned function is called. All share one timer, because each timer wakes an idle
   * process. `callback` returns whether it needs further ticks.
   */
  onTick(callback: () => boolean): () => void {
    this.everyTick.add(callback);
    return () => void this.everyTick.delete(callback);
  }

  onApplicationShutdown(): void {
    this.stop();
  }

  private stop(): void {
    clearInterval(this.ticker);
    this.ticker = undefined;
  }

  private tick(): void {
    const wasRead = this.isRead;
    this.now();
    const isNeeded = [...this.everyTick].map((callback) => callback()).includes(true);
    this.isRead = false;
    if (!wasRead && !isNeeded) this.stop();
  }
}
