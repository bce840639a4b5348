import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Task } from './lanes.js';
import type { LogRecord } from './log-record.js';

/** Returns the tasks of each record; only of the first ones, at least one, if all of them would be too many tasks. */
export type Plan = (records: LogRecord[]) => Task[][] | Promise<Task[][]>;

/** Records of one partition that wait to be planned. */
interface Waiting {
  topic: string;
  records: LogRecord[];
  resolve(plans: Task[][]): void;
  reject(error: unknown): void;
}

/**
 * Plans the records of several partitions in one call, so that one SQL statement serves a whole fetch. One call is in progress at a time: records
 * that come meanwhile share the next one.
 *
 * After a call that returned the tasks of some records only, the next one gets no more than those, and the following ones a quarter more each: what a
 * call does for the others is done again.
 */
export class PlanBatches {
  private waiting: Waiting[] = [];
  private isWorking = false;
  /** The number of records in the next call. */
  private together: number;

  /**
   * @param most the limits of a call; one record may be larger
   * @param hasCapacity whether more tasks are accepted
   * @param isTransient whether an error does not depend on the records, so that a call for each partition would fail, too
   */
  constructor(
    private readonly call: Plan,
    private readonly most: { records: number; bytes: number },
    private readonly hasCapacity: () => boolean = () => true,
    private readonly isTransient: (error: unknown) => boolean = () => false,
  ) {
    this.together = most.records;
  }

  /**
   * The tasks of each of the first records: of all, some or, without capacity, none. The caller requests those of the others again. After an error of a shared
   * call, each partition has a call alone, so that the records of one cannot stop the others; a transient error reaches all of them.
   */
  plan(topic: string, records: LogRecord[]): Promise<Task[][]> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ topic, records, resolve, reject });
      if (!this.isWorking) void this.work();
    });
  }

  private async work(): Promise<void> {
    this.isWorking = true;
    while (this.waiting.length > 0) {
      // the other partitions of the fetch arrive in this turn, and the tasks of the call before this one enter their lanes
      await nextTurn();
      if (!this.hasCapacity()) {
        for (const each of this.waiting.splice(0)) each.resolve([]);
        break;
      }
      await this.planAll(this.next());
    }
    this.isWorking = false;
  }

  private async planAll(shared: Waiting[]): Promise<void> {
    const records = this.first(shared.flatMap((each) => each.records));
    try {
      const plans = await this.call(records);
      this.together = plans.length < records.length ? plans.length : Math.min(Math.ceil(1.25 * this.together), this.most.records);
      let start = 0;
      for (const each of shared) each.resolve(plans.slice(start, (start += each.records.length)));
    } catch (error) {
      if (shared.length > 1 && !this.isTransient(error)) for (const each of shared) await this.planAll([each]);
      else for (const each of shared) each.reject(error);
    }
  }

  /**
   * Records of partitions of one topic that fit in. Those of partitions that have few come first: they cost the others little, and would otherwise be left
   * out again and again if the records before them have too many tasks.
   */
  private next(): Waiting[] {
    this.waiting.sort((a, b) => a.records.length - b.records.length);
    const topic = this.waiting[0]?.topic;
    let size = 0;
    const shared = this.waiting.filter((each, index) => {
      if (each.topic !== topic || (index > 0 && size + each.records.length > this.together)) return false;
      size += each.records.length;
      return true;
    });
    this.waiting = this.waiting.filter((each) => !shared.includes(each));
    return shared;
  }

  /** The first records, as many as a call may have. */
  private first(records: LogRecord[]): LogRecord[] {
    let [count, sum] = [0, 0];
    for (const { bytes } of records) {
      sum += bytes;
      if (count === this.together || (count > 0 && sum > this.most.bytes)) break;
      count += 1;
    }
    return records.slice(0, count);
  }
}
