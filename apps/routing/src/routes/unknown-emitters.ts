import type { EmittedEvent } from '#events';
import { SumPerKey } from '#limits';
import { Lanes, type LanesOptions, type Task } from '#messaging';
import { limitsOfLanes } from '../routing.config.js';

/**
 * The size of the events of unknown emitters that wait for the catalog in memory: an event counts once, and once more for each 16 KiB. It is a sixth of what
 * routing keeps in memory: a producer that uses ids that do not exist must not stop the routing of others.
 */
const MOST = { size: 500, bytes: 16 * 1024 };
/** The maximum number of tasks in progress for events of unknown emitters. */
const UNKNOWN_CONCURRENCY = 64;

type Sized = Pick<EmittedEvent, 'json'>;

/** How much an event counts. */
const sizeOf = ({ json }: Sized): number => 1 + Math.floor(json.length / MOST.bytes);

/**
 * Events of emitters that routing does not know yet. Looking them up in the catalog must not delay other events, so each such emitter has a separate
 * lane. Every further event of the emitter takes this lane until it is empty; otherwise it would overtake them.
 */
export class UnknownEmitters {
  /** The size of the events that wait, by emitter. */
  private readonly waiting = new SumPerKey<string>();
  /** The resulting tasks run in separate lanes. The emitter's lane waits until they have ended. */
  private readonly lanes: Lanes;

  constructor(options: Pick<LanesOptions, 'groupConcurrency' | 'onFailure'>) {
    this.lanes = new Lanes({ ...limitsOfLanes(UNKNOWN_CONCURRENCY), ...options });
  }

  has(emitterId: string): boolean {
    return this.waiting.of(emitterId) > 0;
  }

  /** For the events of a batch, in order: returns whether there is capacity for an event, which it takes. */
  capacity(): (event: Sized) => boolean {
    let left = MOST.size - this.waiting.total;
    return (event) => {
      const isEnough = left > 0;
      if (isEnough) left -= sizeOf(event);
      return isEnough;
    };
  }

  /** `introduce` determines the tasks of the event. It is retried until it does not throw. */
  task(event: Pick<EmittedEvent, 'emitterId' | 'json'>, introduce: () => Promise<Task[]>): Task {
    const { emitterId } = event;
    const size = sizeOf(event);
    this.waiting.add(emitterId, size);
    const end = () => void this.waiting.add(emitterId, -size);
    return {
      lane: `unknown-emitter ${emitterId}`,
      tenant: 'unknown emitters',
      run: async (release) => {
        // a look-up can take long, and the tasks that follow from it count in the limits of the other lanes
        release();
        const tasks = await introduce();
        await Promise.all(tasks.map((task) => new Promise<void>((resolve) => this.lanes.push(task, resolve))));
        end();
      },
      drop: end,
    };
  }
}
