import { Lanes, type Task } from '#messaging';

export interface UnknownEmittersOptions {
  /** Attempts in flight to one webhook. */
  groupConcurrency: number;
  onFailure(error: unknown, lane: string): void;
}

const CONCURRENCY = 64;

/**
 * Events of emitters that routing does not know yet. Looking them up in the catalog must not delay other events, so each such emitter has a separate
 * lane. Every further event of the emitter takes this lane until it is empty; otherwise it would overtake them.
 */
export class UnknownEmitters {
  private readonly waiting = new Map<string, number>();
  /** The resulting tasks run in separate lanes. The emitter's lane waits until they have ended. */
  private readonly lanes: Lanes;

  constructor(options: UnknownEmittersOptions) {
    this.lanes = new Lanes({ concurrency: CONCURRENCY, ...options });
  }

  has(emitterId: string): boolean {
    return this.waiting.has(emitterId);
  }

  /** `introduce` determines the tasks of the event. It is retried until it does not throw. */
  task(emitterId: string, introduce: () => Promise<Task[]>): Task {
    this.waiting.set(emitterId, (this.waiting.get(emitterId) ?? 0) + 1);
    return {
      lane: `unknown-emitter ${emitterId}`,
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
