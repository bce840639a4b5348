import { Interval } from '@nestjs/schedule';
import type { Log } from '#observability';

/**
 * Calls the method every `ms`. A call while a round is in progress returns that round. A round never rejects: a failure is logged as `failure`, by the
 * `log` of the class, and the next round comes as usual.
 */
export function Rounds(ms: number, failure: string) {
  const inProgress = new WeakMap<object, Promise<void>>();
  return (prototype: object, name: string, descriptor: TypedPropertyDescriptor<() => Promise<void>>): void => {
    const work = descriptor.value!;
    descriptor.value = function (this: object) {
      const { log } = this as { log: Log };
      const known = inProgress.get(this);
      if (known) return known;
      const round = work
        .call(this)
        .catch((error: Error) => log.warn({ err: error }, failure))
        .finally(() => inProgress.delete(this));
      inProgress.set(this, round);
      return round;
    };
    Interval(ms)(prototype, name, descriptor);
  };
}
