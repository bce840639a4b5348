import { createRequire } from 'node:module';

/** The parts of kafkajs' queue of requests (one per connection) that set timers. */
interface RequestQueue {
  pending: unknown[];
  requestTimeout: number;
  scheduleCheckPendingRequests(): void;
}

const { prototype: queue } = createRequire(import.meta.url)('kafkajs/src/network/requestQueue/index.js') as { prototype: RequestQueue };
const schedule = queue.scheduleCheckPendingRequests;

/**
 * Without this, each connection of kafkajs 2.2.4 wakes the process every millisecond from its first response on: it looks for waiting requests and
 * schedules the next look although there are none. A request that has to wait schedules one itself.
 */
queue.scheduleCheckPendingRequests = function (this: RequestQueue): void {
  if (this.pending.length > 0) schedule.call(this);
};
