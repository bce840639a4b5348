import { expect, it } from '@jest/globals';
import { createRequire } from 'node:module';
import './kafkajs-fixes.js';

const Runner = createRequire(import.meta.url)('kafkajs/src/consumer/runner.js') as new (options: object) => {
  running: boolean;
  commitOffsets(offsets: object): Promise<void>;
};

const logger = { namespace: () => logger, debug: () => {} };

/** A consumer of kafkajs whose group fails commits with these errors, one after the other. */
function consumer(...errors: (Error | undefined)[]) {
  const commits: object[] = [];
  const consumerGroup = {
    commitOffsets: (offsets: object) => {
      commits.push(offsets);
      const error = errors.shift();
      return error ? Promise.reject(error) : Promise.resolve();
    },
  };
  const runner = new Runner({ logger, consumerGroup, retry: { retries: 5, initialRetryTime: 1 } });
  runner.running = true;
  return { runner, commits };
}

it('does not repeat a commit that failed, because the group may have another generation by then', async () => {
  const outage = Object.assign(new Error('connect ECONNREFUSED'), { name: 'KafkaJSConnectionError', retriable: true });
  const { runner, commits } = consumer(outage);
  await expect(runner.commitOffsets({ topics: [] })).rejects.toThrow('ECONNREFUSED');
  await runner.commitOffsets({ topics: ['later'] });
  expect(commits).toEqual([{ topics: [] }, { topics: ['later'] }]);
});

it('fails a commit of a consumer that is not running, so that it does not count as committed', async () => {
  const { runner, commits } = consumer();
  runner.running = false;
  await expect(runner.commitOffsets({})).rejects.toMatchObject({
    name: 'KafkaJSNonRetriableError',
    message: 'the consumer is not running',
  });
  expect(commits).toEqual([]);
});
