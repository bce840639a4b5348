import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Task } from './lanes.js';
import type { LogRecord } from './log-record.js';

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
 */
export class PlanBatches {
  private waiting: Waiting[] = [];
  private working: Promise<void> | undefined;

  /** maxRecords: of records in a call, unless one partition has more. */
  constructor(
    private readonly call: Plan,
    private readonly maxRecords: number,
  ) {}

  /** The tasks of each record. An error of the call reaches all partitions that share it. */
  plan(topic: string, records: LogRecord[]): Promise<Task[][]> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ topic, records, resolve, reject });
      this.working ??= this.work().finally(() => (this.working = undefined));
    });
  }

  private async work(): Promise<void> {
    while (this.waiting.length > 0) {
      // the other partitions of the fetch arrive in this turn, and the tasks of the call before this one enter their lanes
      await nextTurn();
      const shared = this.next();
      const records = shared.flatMap((each) => each.records);
      try {
        const plans = await this.call(records);
        let start = 0;
        for (const each of shared) each.resolve(plans.slice(start, (start += each.records.length)));
      } catch (error) {
        for (const each of shared) each.reject(error);
      }
    }
  }

  /** The longest-waiting records, and those of other partitions of the topic that fit in. */
  private next(): Waiting[] {
    const topic = this.waiting[0]?.topic;
    let size = 0;
    const shared = this.waiting.filter((each, index) => {
      if (each.topic !== topic || (index > 0 && size + each.records.length > this.maxRecords)) return false;
      size += each.records.length;
      return true;
    });
    this.waiting = this.waiting.filter((each) => !shared.includes(each));
    return shared;
  }
}
