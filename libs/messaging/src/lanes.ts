import type { ConsumerSettings } from './handlers.js';

/** A unit of work in a lane. `run` must not throw for expected outcomes; if it throws, it is retried. */
export interface Task {
  /** The tasks of one lane run one at a time, in the order in which they were added, but urgent ones first. */
  lane: string;
  /** It runs before the tasks of its lane that have not begun and are not urgent. */
  isUrgent?: boolean;
  /** The lanes of one group share a limit, so that a slow group does not use up the total concurrency. */
  group?: string;
  /** The groups of one tenant share a limit, so that one with many slow groups does not use up the total concurrency either. */
  tenant?: string;
  /** release: frees its place in the limits of concurrency, for instance while its outcome is stored. Its lane stays occupied until it ends. */
  run(release: () => void): Promise<void>;
  /** Called instead of `run` if the task no longer belongs to this process. */
  drop?(): void;
  /** Set for the task of a record: whether this process may begin it now, or has begun it. Another process may have done it otherwise. */
  isOwn?(): boolean;
  /** Whether nothing is left to do, although it has not run. Such a task is done even if this process begins no more. */
  isSettled?(): boolean;
}

type Limits = 'groupConcurrency' | 'loneGroupConcurrency' | 'tenantConcurrency' | 'reserve';

export interface LanesOptions extends Pick<ConsumerSettings, Limits> {
  /** The maximum number of tasks in progress, over all lanes. */
  concurrency: number;
  /** Called for each failure of a task, before the task is retried. */
  onFailure?(error: unknown, lane: string): void;
}

/** Before a task that has thrown is retried. */
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5000;

/** A tenant, or a group without one. */
interface Holder {
  running: number;
  /** The number of its lanes in `ready`. */
  ready: number;
}

interface Tenant extends Holder {
  /** The number of its groups; when it reaches zero, the tenant is removed. */
  groups: number;
  /** The number of its unfinished tasks. */
  outstanding: number;
  /** Lanes with work that wait for the limit of the tenant. */
  waiting: Lane[];
}

interface Group extends Holder {
  tenant: Tenant | undefined;
  tenantKey: string | undefined;
  /** The number of its lanes that have work; when it reaches zero, the group is removed. */
  lanes: number;
  /** Lanes with work that wait for the limit of the group. */
  waiting: Lane[];
}

interface Lane {
  key: string;
  group: Group;
  groupKey: string;
  /** Those that have not begun, in the order in which they run. */
  tasks: (Pick<Task, 'run' | 'isUrgent'> & { ended(): void })[];
  running: boolean;
}

/**
 * Keyed lanes: ordered within a lane, concurrent across lanes, with limits on concurrency. A lane exists while it has work.
 *
 *   push ──► lane idle? ──► group and tenant below their limits? ──► total below its limit? ──► runs ──► next task of the lane
 *              │ no: behind      │ no: waits in                          │ no: waits
 *              ▼ the others      ▼ its group or tenant                   ▼ in `ready`
 */
export class Lanes {
  private readonly lanes = new Map<string, Lane>();
  private readonly groups = new Map<string, Group>();
  private readonly tenants = new Map<string, Tenant>();
  private readonly ready: Lane[] = [];
  /** Those that have lanes in `ready`, and no task in progress. */
  private readonly starved = new Set<Holder>();
  private running = 0;
  private count = 0;
  /** The pauses of failed tasks: each ends when its function is called. */
  private readonly pauses = new Set<() => void>();
  private waiters: { below: number; resolve: () => void }[] = [];

  constructor(private readonly options: LanesOptions) {}

  /** The number of unfinished tasks. */
  get outstanding(): number {
    return this.count;
  }

  /** The number of unfinished tasks of one tenant. */
  outstandingOf(tenant: string): number {
    return this.tenants.get(tenant)?.outstanding ?? 0;
  }

  push(task: Task, ended: () => void): void {
    this.count += 1;
    let lane = this.lanes.get(task.lane);
    if (!lane) {
      const groupKey = task.group ?? task.lane;
      lane = { key: task.lane, group: this.group(groupKey, task.tenant), groupKey, tasks: [], running: false };
      this.lanes.set(task.lane, lane);
      lane.group.lanes += 1;
    }
    if (lane.group.tenant) lane.group.tenant.outstanding += 1;
    const { run, isUrgent } = task;
    const behind = isUrgent ? lane.tasks.findLastIndex((each) => each.isUrgent) + 1 : lane.tasks.length;
    lane.tasks.splice(behind, 0, { run, isUrgent, ended });
    if (lane.tasks.length === 1 && !lane.running) this.offer(lane);
  }

  /** Carries out work in its turn. Unlike a task, it is not retried: if it fails, its caller gets the error. */
  execute<T>(lane: string, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => this.push({ lane, run: () => work().then(resolve, reject) }, () => {}));
  }

  /** Repeats at once the tasks that have failed. */
  endPauses(): void {
    for (const end of this.pauses) end();
  }

  /** Resolves when fewer than `below` tasks are outstanding. */
  waitUntilBelow(below: number): Promise<void> {
    if (this.count < below) return Promise.resolve();
    return new Promise((resolve) => this.waiters.push({ below, resolve }));
  }

  private group(key: string, tenantKey: string | undefined): Group {
    let group = this.groups.get(key);
    if (!group) {
      const tenant = tenantKey === undefined ? undefined : this.tenant(tenantKey);
      if (tenant) tenant.groups += 1;
      this.groups.set(key, (group = { tenant, tenantKey, lanes: 0, running: 0, ready: 0, waiting: [] }));
    }
    return group;
  }

  private tenant(key: string): Tenant {
    let tenant = this.tenants.get(key);
    if (!tenant) this.tenants.set(key, (tenant = { groups: 0, running: 0, ready: 0, outstanding: 0, waiting: [] }));
    return tenant;
  }

  private removeGroup(key: string, { tenant, tenantKey }: Group): void {
    this.groups.delete(key);
    // it can do more now
    if (this.groups.size === 1) for (const group of this.groups.values()) this.enqueue(...group.waiting.splice(0));
    if (!tenant || tenantKey === undefined) return;
    tenant.groups -= 1;
    if (tenant.groups === 0) this.tenants.delete(tenantKey);
  }

  private offer(lane: Lane): void {
    const { group } = lane;
    const { tenantConcurrency = Infinity } = this.options;
    if (group.running >= this.limitOfGroup) group.waiting.push(lane);
    else if (group.tenant && group.tenant.running >= tenantConcurrency) group.tenant.waiting.push(lane);
    else if (this.running >= this.limitFor(lane)) this.enqueue(lane);
    else void this.run(lane);
  }

  private get limitOfGroup(): number {
    const { groupConcurrency = Infinity, loneGroupConcurrency = groupConcurrency } = this.options;
    return this.groups.size === 1 ? loneGroupConcurrency : groupConcurrency;
  }

  /** How many tasks may be in flight for the next one of the lane to begin. */
  private limitFor({ group }: Lane): number {
    return this.options.concurrency + (holderOf(group).running === 0 ? (this.options.reserve ?? 0) : 0);
  }

  private enqueue(...lanes: Lane[]): void {
    for (const lane of lanes) {
      this.ready.push(lane);
      this.change(holderOf(lane.group), 'ready', 1);
    }
  }

  private dequeue(index: number): Lane | undefined {
    const [lane] = index === 0 ? [this.ready.shift()] : this.ready.splice(index, 1);
    if (lane) this.change(holderOf(lane.group), 'ready', -1);
    return lane;
  }

  private change(holder: Holder, what: keyof Holder, by: 1 | -1): void {
    holder[what] += by;
    if (holder.ready > 0 && holder.running === 0) this.starved.add(holder);
    else this.starved.delete(holder);
  }

  private async run(lane: Lane): Promise<void> {
    const task = lane.tasks.shift();
    if (!task) throw new Error(`lane ${lane.key} has nothing to run`);
    lane.running = true;
    if (lane.group.tenant) lane.group.running += 1;
    this.change(holderOf(lane.group), 'running', 1);
    this.running += 1;
    let isReleased = false;
    const release = () => {
      if (isReleased) return;
      isReleased = true;
      this.release(lane.group);
      this.startNext();
    };
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 3, MAX_PAUSE_MS)) {
      try {
        await task.run(release);
        break;
      } catch (error) {
        this.options.onFailure?.(error, lane.key);
        // a task in a lane is never dropped here: code that wants another outcome decides so inside `run`
        await this.pause(pause);
      }
    }
    lane.running = false;
    this.count -= 1;
    if (lane.group.tenant) lane.group.tenant.outstanding -= 1;
    task.ended();
    this.next(lane, isReleased);
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.pauses.delete(end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.pauses.add(end);
    });
  }

  /** A task of the group does not count any more; the next lanes that wait for it are ready. */
  private release(group: Group): void {
    const { tenant } = group;
    if (tenant) group.running -= 1;
    this.change(holderOf(group), 'running', -1);
    this.running -= 1;
    if (tenant) {
      const { tenantConcurrency = Infinity } = this.options;
      // before the group's own next lane: the groups of a tenant take turns
      if (tenant.waiting.length > 0) this.enqueue(...tenant.waiting.splice(0, tenantConcurrency - tenant.running));
    }
    const fellow = group.waiting.shift();
    if (fellow) this.enqueue(fellow);
  }

  private startNext(): void {
    while (this.running < this.options.concurrency) {
      const first = this.dequeue(0);
      if (!first) break;
      this.offer(first);
    }
    this.useReserve();
  }

  /** Starts tasks of those that have none in progress. */
  private useReserve(): void {
    const { concurrency, reserve = 0 } = this.options;
    while (this.starved.size > 0 && this.running < concurrency + reserve) {
      const lane = this.dequeue(this.ready.findIndex(({ group }) => this.starved.has(holderOf(group))));
      if (lane) this.offer(lane);
    }
  }

  /** The lane's task has ended. */
  private next(lane: Lane, isReleased: boolean): void {
    const { group } = lane;
    const hasTasks = lane.tasks.length > 0;
    // at the end of its group: the lanes of a group take turns
    if (hasTasks && (!isReleased || group.waiting.length > 0)) group.waiting.push(lane);
    if (!hasTasks) {
      this.lanes.delete(lane.key);
      group.lanes -= 1;
      if (group.lanes === 0) this.removeGroup(lane.groupKey, group);
    }
    if (!isReleased) this.release(group);
    else if (hasTasks && group.waiting.length === 0) this.offer(lane);
    this.startNext();
    if (this.waiters.length > 0) {
      this.waiters = this.waiters.filter(({ below, resolve }) => this.count >= below || resolve());
    }
  }
}

const holderOf = (group: Group): Holder => group.tenant ?? group;
