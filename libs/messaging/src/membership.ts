/** Why the tasks are suspended. */
type Doubt = 'rebalancing' | 'unconfirmed' | 'planning' | 'left';

/** How long a rebalance may delay tasks, which another process may have to run. */
const REBALANCING_MS = 20_000;

export interface Suspendable {
  suspend(): void;
  resume(): void;
}

/**
 * Suspends the tasks while this process may not be the owner of its partitions:
 *
 *   member ──► rebalancing: the group is about to assign the partitions ───────► a new assignment, or 20 s
 *     ├──────► unconfirmed: after a pause of half a session, or a plan as long,
 *     │                     or because the group has refused a commit ─────────► a new assignment, or a commit that succeeds
 *     ├──────► planning: there has been no heartbeat during a long plan ───────► the end of the plan, after which it is unconfirmed
 *     └──────► left: the process is about to join the group again ─────────────► a new assignment
 *
 * A process stands still when it is stopped (SIGSTOP) or when its event loop is blocked. It cannot know whether the group has given its partitions to another
 * process meanwhile, until the group responds to a request that it sent afterwards. So only an assignment or a commit that began after a doubt ends it: each
 * doubt has a number. Neither ends `planning`: the next heartbeat follows the plan. A machine that is suspended, and a virtual machine that is paused, stop the
 * clock, too: the process notices that only when the group refuses a commit.
 */
export class Membership {
  private readonly doubts = new Map<Doubt, number>();
  private count = 0;
  private rebalance: NodeJS.Timeout | undefined;
  /** undefined until the consumer has started, which may take longer than any pause. */
  private tickedAt: number | undefined;
  /** When the plan in progress began. */
  private planningSince: number | undefined;

  /** pauseMs: if the process stands still or plans for longer, the group may have removed it. */
  constructor(
    private readonly tasks: Suspendable,
    private readonly pauseMs: number,
  ) {}

  /** The number of the newest doubt. */
  get newestDoubt(): number {
    return this.count;
  }

  /** Whether a commit can end the suspension. */
  get isUnconfirmed(): boolean {
    return this.doubts.has('unconfirmed');
  }

  /** Whether this process owns its partitions. */
  get isCertain(): boolean {
    return this.doubts.size === 0;
  }

  /** The consumer has started. */
  started(): void {
    this.tickedAt = performance.now();
  }

  /** Call it often. Returns how long the process stood still, in ms, if the group may have removed it meanwhile. */
  tick(nowMs = performance.now()): number | undefined {
    this.noticeLongPlan(nowMs);
    if (this.tickedAt === undefined) return undefined;
    const stoodStillMs = nowMs - this.tickedAt;
    this.tickedAt = nowMs;
    if (stoodStillMs <= this.pauseMs) return undefined;
    this.doubt('unconfirmed');
    return stoodStillMs;
  }

  /** A plan begins. No heartbeat is sent until `planned` is called. Only one plan is in progress at a time. */
  planning(): void {
    this.planningSince = performance.now();
  }

  planned(): void {
    // no tick may have noticed it yet
    this.noticeLongPlan(performance.now());
    this.planningSince = undefined;
    if (this.doubts.delete('planning')) this.doubt('unconfirmed');
  }

  rebalancing(): void {
    this.doubt('rebalancing');
    this.rebalance ??= setTimeout(() => {
      // this timer may be the first to run after the process stood still
      this.tick();
      this.close();
      this.trust(this.count, 'rebalancing');
    }, REBALANCING_MS);
  }

  /** The group may have removed the member, such as when it refuses a commit. */
  unconfirmed(): void {
    this.doubt('unconfirmed');
  }

  left(): void {
    this.doubt('left');
  }

  /** A commit has succeeded; `newestDoubt` when it began. */
  confirmed(newestDoubt: number): void {
    this.trust(newestDoubt, 'unconfirmed');
  }

  /** The progress of the assigned partitions is known; `newestDoubt` at the assignment. */
  assigned(newestDoubt: number): void {
    this.trust(newestDoubt, 'rebalancing', 'unconfirmed', 'left');
    if (!this.doubts.has('rebalancing')) this.close();
  }

  close(): void {
    clearTimeout(this.rebalance);
    this.rebalance = undefined;
  }

  private noticeLongPlan(nowMs: number): void {
    if (nowMs - (this.planningSince ?? nowMs) > this.pauseMs) this.doubt('planning');
  }

  private doubt(doubt: Doubt): void {
    this.doubts.set(doubt, ++this.count);
    this.tasks.suspend();
  }

  private trust(newestDoubt: number, ...ended: Doubt[]): void {
    for (const doubt of ended) if ((this.doubts.get(doubt) ?? 0) <= newestDoubt) this.doubts.delete(doubt);
    if (this.isCertain) this.tasks.resume();
  }
}
