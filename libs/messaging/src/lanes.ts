/** A piece of work in a lane. `run` must not throw for what is expected; when it throws all the same, it's run again. */
export interface Task {
  /** Tasks of one lane run one after the other, in the order in which they came. */
  lane: string;
  /** Lanes of one group share a bound of their own, so that a slow one doesn't take all the room. */
  group?: string;
  run(): Promise<void>;
  /** Told instead of `run`, when that isn't this process's to do any more. */
  drop?(): void;
}

export interface LanesOptions {
  /** Tasks in flight at a time, over all lanes. */
  concurrency: number;
  /** Tasks of one group in flight at a time; without it only `concurrency` bounds. */
  groupConcurrency?: number;
  /** Tasks in flight beyond `concurrency`, each of a group that has none in flight: a group need not wait until the others' tasks end. */
  reserve?: number;
  /** Told of each throw of a task, before the task runs again. */
  onFailure?(error: unknown, lane: string): void;
}

interface Group {
  /** Its lanes that have work: with the last of them the group goes. */
  lanes: number;
  running: number;
  /** Lanes with something to do that wait for room in the group. */
  waiting: Lane[];
}

interface Lane {
  key: string;
  group: Group;
  groupKey: string;
  tasks: { run(): Promise<void>; ended(): void }[];
  running: boolean;
}

/**
 * Keyed lanes: order within a lane, lanes side by side, bounded in flight. A lane exists while it has work.
 *
 *   push ──► lane idle? ──► room in its group? ──► room in all? ──► runs ──► next of the lane
 *              │ no: behind      │ no: waits in        │ no: waits
 *              ▼ its fellows     ▼ its group           ▼ in `ready`
 */
export class Lanes {
  private readonly lanes = new Map<string, Lane>();
  private readonly groups = new Map<string, Group>();
  private readonly ready: Lane[] = [];
  private running = 0;
  private count = 0;
  private roomWaiters: { below: number; resolve: () => void }[] = [];

  constructor(private readonly options: LanesOptions) {}

  /** Tasks that have not ended. */
  get outstanding(): number {
    return this.count;
  }

  push(task: Task, ended: () => void): void {
    this.count += 1;
    let lane = this.lanes.get(task.lane);
    if (!lane) {
      const groupKey = task.group ?? task.lane;
      lane = { key: task.lane, group: this.group(groupKey), groupKey, tasks: [], running: false };
      this.lanes.set(task.lane, lane);
      lane.group.lanes += 1;
    }
    lane.tasks.push({ run: task.run, ended });
    if (lane.tasks.length === 1 && !lane.running) this.offer(lane);
  }

  /** Resolves when fewer than `below` tasks are outstanding. */
  room(below: number): Promise<void> {
    if (this.count < below) return Promise.resolve();
    return new Promise((resolve) => this.roomWaiters.push({ below, resolve }));
  }

  private group(key: string): Group {
    let group = this.groups.get(key);
    if (!group) this.groups.set(key, (group = { lanes: 0, running: 0, waiting: [] }));
    return group;
  }

  private offer(lane: Lane): void {
    if (lane.group.running >= (this.options.groupConcurrency ?? Infinity)) lane.group.waiting.push(lane);
    else if (this.running >= this.bound(lane)) this.ready.push(lane);
    else void this.run(lane);
  }

  /** How many tasks may be in flight for the next one of the lane to begin. */
  private bound({ group }: Lane): number {
    return this.options.concurrency + (group.running === 0 ? (this.options.reserve ?? 0) : 0);
  }

  private async run(lane: Lane): Promise<void> {
    const task = lane.tasks.shift();
    if (!task) throw new Error(`lane ${lane.key} has nothing to run`);
    lane.running = true;
    lane.group.running += 1;
    this.running += 1;
    for (let pause = 100; ; pause = Math.min(pause * 2, 5000)) {
      try {
        await task.run();
        break;
      } catch (error) {
        this.options.onFailure?.(error, lane.key);
        // what is in a lane is never dropped: whoever wants another outcome decides so inside of `run`
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
    lane.running = false;
    lane.group.running -= 1;
    this.running -= 1;
    this.count -= 1;
    task.ended();
    this.next(lane);
  }

  /** Begins tasks of groups that have none in flight. */
  private useReserve(): void {
    const { concurrency, reserve = 0 } = this.options;
    for (let index = 0; reserve > 0 && index < this.ready.length && this.running < concurrency + reserve;) {
      const lane = this.ready[index] as Lane;
      if (lane.group.running > 0) index += 1;
      else {
        this.ready.splice(index, 1);
        this.offer(lane);
      }
    }
  }

  private next(lane: Lane): void {
    // behind its group's others: lanes of a group take turns
    if (lane.tasks.length > 0) {
      lane.group.waiting.push(lane);
    } else {
      this.lanes.delete(lane.key);
      lane.group.lanes -= 1;
      if (lane.group.lanes === 0) this.groups.delete(lane.groupKey);
    }
    const fellow = lane.group.waiting.shift();
    if (fellow) this.ready.push(fellow);
    while (this.running < this.options.concurrency) {
      const first = this.ready.shift();
      if (!first) break;
      this.offer(first);
    }
    this.useReserve();
    if (this.roomWaiters.length > 0) {
      this.roomWaiters = this.roomWaiters.filter(({ below, resolve }) => this.count >= below || resolve());
    }
  }
}
