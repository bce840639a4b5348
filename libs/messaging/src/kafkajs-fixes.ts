import { createRequire } from 'node:module';

const requireKafkajs = createRequire(import.meta.url);

interface Runner {
  running: boolean;
  consumerGroup: { commitOffsets(offsets: object): Promise<void> };
  commitOffsets(offsets: object): Promise<void>;
}

const { prototype: runner } = requireKafkajs('kafkajs/src/consumer/runner.js') as { prototype: Runner };

/**
 * kafkajs 2.2.4 repeats a commit that failed for as long as the brokers are down, and sends the old positions with whatever generation the group has
 * by then. If another process has owned a partition meanwhile, its newer position would be overwritten, and records would be repeated. One attempt
 * belongs to one generation: the brokers refuse it after a rebalance, and our consumers commit their current positions with the next tick.
 */
runner.commitOffsets = function (this: Runner, offsets: object): Promise<void> {
  return this.running ? this.consumerGroup.commitOffsets(offsets) : Promise.reject(new Error('the consumer is not running'));
};

/** The parts of kafkajs' queue of requests (one per connection) that set timers. */
interface RequestQueue {
  pending: unknown[];
  requestTimeout: number;
  scheduleCheckPendingRequests(): void;
}

const { prototype: queue } = requireKafkajs('kafkajs/src/network/requestQueue/index.js') as { prototype: RequestQueue };
const schedule = queue.scheduleCheckPendingRequests;

/**
 * Without this, each connection of kafkajs 2.2.4 wakes the process every millisecond from its first response on: it looks for waiting requests and
 * schedules the next look although there are none. A request that has to wait schedules one itself.
 */
queue.scheduleCheckPendingRequests = function (this: RequestQueue): void {
  if (this.pending.length > 0) schedule.call(this);
};
