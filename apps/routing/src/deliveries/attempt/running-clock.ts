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
  private readonly ticker = setInterval(() => this.tick(), TICK_MS).unref();
  private readonly everyTick = new Set<() => void>();
  private seenAt = performance.now();
  private stoodStillMs = 0;

  /** The time in which this process ran, in ms. Only differences are meaningful. */
  now(): number {
    const now = performance.now();
    // the caller may be the first to run after the process stood still
    if (now - this.seenAt > STILL_MS) this.stoodStillMs += now - this.seenAt - TICK_MS;
    this.seenAt = now;
    return now - this.stoodStillMs;
  }

  /** Calls back ten times per second, until the returned function is called. All share one timer, because each timer wakes an idle process. */
  onTick(callback: () => void): () => void {
    this.everyTick.add(callback);
    return () => void this.everyTick.delete(callback);
  }

  onApplicationShutdown(): void {
    clearInterval(this.ticker);
  }

  private tick(): void {
    this.now();
    for (const callback of this.everyTick) callback();
  }
}
