import { Lanes, type Task } from '#messaging';

export interface StrangersOptions {
  /** Attempts in flight to one webhook. */
  groupConcurrency: number;
  onFailure(error: unknown, lane: string): void;
}

const CONCURRENCY = 64;

/**
 * Events of emitters that nobody here knows yet. The catalog is asked for them, and that must not hold up the others:
 * so they take a lane of their own, and so does every event that comes from the same emitter until the lane is empty,
 * or a later one would overtake them.
 */
export class Strangers {
  private readonly waiting = new Map<string, number>();
  /** What they lead to runs in lanes of its own: their lanes hold their places until it has ended. */
  private readonly lanes: Lanes;

  constructor(options: StrangersOptions) {
    this.lanes = new Lanes({ concurrency: CONCURRENCY, ...options });
  }

  has(emitterId: string): boolean {
    return this.waiting.has(emitterId);
  }

  /** `introduce` finds out what is to be done with the event. It's run again until it doesn't throw. */
  task(emitterId: string, introduce: () => Promise<Task[]>): Task {
    this.waiting.set(emitterId, (this.waiting.get(emitterId) ?? 0) + 1);
    return {
      lane: `stranger ${emitterId}`,
      run: async () => {
        const tasks = await introduce();
        await Promise.all(tasks.map((task) => new Promise<void>((resolve) => this.lanes.push(task, resolve))));
        this.ended(emitterId);
      },
      drop: () => this.ended(emitterId),
    };
  }

  private ended(emitterId: string): void {
    const left = (this.waiting.get(emitterId) ?? 1) - 1;
    if (left === 0) this.waiting.delete(emitterId);
    else this.waiting.set(emitterId, left);
  }
}
