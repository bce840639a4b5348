import type { Chance } from './chance-for-tests.js';
import type { DeliveryStore } from '../store/delivery-store.js';

/** The network between a replica and the store, and what can go wrong in it. */
export interface Wire {
  chance: Chance;
  /** The replica is dead: it never responds. */
  dead(): boolean;
  /** The database is down. */
  away(): boolean;
  /** Share of calls that fail, half of them after they took effect. */
  faults(): number;
}

/** The methods that may wake a backlog. */
const WAKING: ReadonlySet<string | symbol> = new Set<keyof DeliveryStore>([
  'parkFresh',
  'parkInFlight',
  'parkFailed',
  'spill',
  'openBreaker',
  'settle',
  'disable',
]);

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export function overWire(store: DeliveryStore, { chance, dead, away, faults }: Wire): DeliveryStore {
  const fail = () => Object.assign(new Error('the connection is lost'), { code: 'ECONNRESET' });
  let notify: (inMs: number) => void = () => {};
  return new Proxy(store, {
    get(target, name) {
      if (name === 'listen') return (listener: typeof notify) => (notify = listener);
      const method = Reflect.get(target, name) as ((...args: unknown[]) => Promise<unknown>) | undefined;
      if (typeof method !== 'function') return method;
      return async (...args: unknown[]) => {
        await sleep(chance.between(0.2, 3));
        if (dead()) return new Promise(() => {});
        if (away() || chance.happens(faults() / 2)) throw fail();
        const result = await method.apply(target, args);
        if (WAKING.has(name)) notify(0);
        await sleep(chance.between(0.2, 3));
        if (dead()) return new Promise(() => {});
        if (away() || chance.happens(faults() / 2)) throw fail();
        return result;
      };
    },
  });
}
