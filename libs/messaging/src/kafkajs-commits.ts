import { createRequire } from 'node:module';

interface Runner {
  running: boolean;
  consumerGroup: { commitOffsets(offsets: object): Promise<void> };
  commitOffsets(offsets: object): Promise<void>;
}

const { prototype: runner } = createRequire(import.meta.url)('kafkajs/src/consumer/runner.js') as { prototype: Runner };

/**
 * kafkajs 2.2.4 repeats a commit that failed for as long as the brokers are down, and sends the old positions with whatever generation the group has
 * by then. If another process has owned a partition meanwhile, its newer position would be overwritten, and records would be repeated. One attempt
 * belongs to one generation: the brokers refuse it after a rebalance, and our consumers commit their current positions with the next tick.
 */
runner.commitOffsets = function (this: Runner, offsets: object): Promise<void> {
  return this.running ? this.consumerGroup.commitOffsets(offsets) : Promise.reject(new Error('the consumer is not running'));
};
