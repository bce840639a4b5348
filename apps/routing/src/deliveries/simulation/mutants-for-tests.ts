import type { UserId } from '#contracts';
import type { Task } from '#messaging';
import type { Delivery } from '../delivery.js';
import type { DeliveryStoreInMemory } from '../store/delivery-store-in-memory-for-tests.js';
import type { Claim, Settlement } from '../store/delivery-store.js';
import type { Target } from '../receivers/targets.js';
import { OWNER, type Replica } from './replica-for-tests.js';

/** A mistake that the simulation must detect. */
export interface Mutant {
  name: string;
  /** The seed of a simulation that detects it; calm when even. It is tried first and saves the search. */
  detectedBy: number;
  store?(store: DeliveryStoreInMemory): void;
  replica?(replica: Replica): void;
}

/** The private members of the classes, for mutants only. */
interface DispatcherParts {
  firstAttempt(...delivery: [Delivery, number, UserId]): Task;
  parkInFlight(attempt: { done(): void }): Promise<boolean>;
}
const dispatcherOf = (replica: Replica): DispatcherParts => replica.dispatcher as unknown as DispatcherParts;

export const MUTANTS: Mutant[] = [
  {
    name: 'what has failed is not parked',
    detectedBy: 1,
    store: (store) => {
      store.parkFailed = async () => [];
    },
  },
  {
    name: 'what was delivered later stays parked',
    detectedBy: 1,
    store: (store) => {
      const settle = store.settle.bind(store);
      store.settle = (id, settlements, options) =>
        settle(
          id,
          settlements.filter(({ delivered }) => !delivered),
          options,
        );
    },
  },
  {
    name: 'a spilled webhook is direct again while something is parked',
    detectedBy: 8,
    store: (store) => {
      store.finishClosing = async (claim: Claim) => {
        // right, but slow: something is parked meanwhile oftener
        await new Promise((resolve) => setTimeout(resolve, 200));
        const hook = store.hooks.get(claim.webhookId);
        if (hook && hook.rate_limit === null) Object.assign(hook, { spilled: false, closingUntil: 0, version: hook.version + 1 });
        await store.release(claim, { when: 'next due' });
        return 'direct';
      };
    },
  },
  {
    name: 'a backlog is deleted while deliveries are parked in it',
    detectedBy: 1,
    store: (store) => {
      const finishClosing = store.finishClosing.bind(store);
      store.finishClosing = async (claim: Claim) => {
        const result = await finishClosing(claim);
        if (result === 'direct' && store.hooks.get(claim.webhookId)?.rate_limit === null) store.backlogs.delete(claim.webhookId);
        return result;
      };
    },
  },
  {
    name: 'parking does not ask whether the webhook still is spilled',
    detectedBy: 1,
    store: (store) => {
      store.parkFresh = async (id, deliveries) => {
        for (const delivery of deliveries) {
          const key = `${delivery.place.ms}-${delivery.place.seq}`;
          const row = {
            delivery,
            fresh: true,
            attempts: [],
            tries: 0,
            dueAt: Date.now(),
            inFlightUntil: 0,
            parkedAt: Date.now(),
            requests: 0,
          };
          if (!store.parked.get(id)?.has(key)) store.parked.get(id)?.set(key, row);
        }
        return 'spilled';
      };
    },
  },
  {
    name: 'what is fresh is taken in any order',
    detectedBy: 1,
    store: (store) => {
      const take = store.take.bind(store);
      store.take = async (id, limit, options) => {
        const { parked, inFlight } = await take(id, limit, options);
        return { parked: parked.reverse(), inFlight };
      };
    },
  },
  {
    name: 'a backlog is drained while a first attempt is in flight',
    detectedBy: 2,
    store: (store) => {
      const take = store.take.bind(store);
      store.take = async (id, limit, options) => {
        const rows = [...(store.parked.get(id)?.values() ?? [])];
        for (const row of rows) row.inFlightUntil = 0;
        return take(id, limit, options);
      };
    },
  },
  {
    name: 'a backlog is not drained while any attempt takes long',
    detectedBy: 2,
    store: (store) => {
      const take = store.take.bind(store);
      store.take = async (id, limit, options) => {
        const taken = await take(id, limit, options);
        return taken.inFlight || options?.except?.emitters.length ? { parked: [], inFlight: taken.inFlight } : taken;
      };
    },
  },
  {
    name: 'a backlog is drained as if no attempt took long',
    detectedBy: 2,
    store: (store) => {
      const take = store.take.bind(store);
      store.take = (id, limit, { except, ...options } = {}) =>
        take(id, limit, { ...options, except: { places: except?.places ?? [], emitters: [] } });
    },
  },
  {
    name: 'deliveries in progress are taken again',
    detectedBy: 2,
    store: (store) => {
      const take = store.take.bind(store);
      store.take = (id, limit, { except, ...options } = {}) =>
        take(id, limit, { ...options, except: { places: [], emitters: except?.emitters ?? [] } });
    },
  },
  {
    name: 'two may drain one backlog',
    detectedBy: 2,
    store: (store) => {
      store.claim = async (limit, leaseId) =>
        [...store.backlogs]
          .filter(([, { nextDue }]) => nextDue <= Date.now())
          .slice(0, limit)
          .map(([webhookId, backlog]) => {
            backlog.leaseId ??= leaseId;
            return { webhookId, ownerId: OWNER, leaseId: backlog.leaseId, wakes: backlog.wakes };
          });
    },
  },
  {
    name: 'every arrival wakes a backlog whose breaker is open',
    detectedBy: 4,
    store: (store) => {
      const parkFresh = store.parkFresh.bind(store);
      store.parkFresh = async (id, deliveries) => {
        const mode = await parkFresh(id, deliveries);
        const backlog = store.backlogs.get(id);
        if (mode === 'spilled' && backlog) backlog.nextDue = Date.now();
        return mode;
      };
    },
  },
  {
    name: 'a probe is always the same delivery',
    detectedBy: 15,
    store: (store) => {
      const choked = new Set<string>();
      const settle = store.settle.bind(store);
      store.settle = async (id, settlements: Settlement[], options) => {
        for (const { delivery, delivered } of settlements) if (!delivered) choked.add(`${delivery.place.ms}-${delivery.place.seq}`);
        return settle(id, settlements, options);
      };
      store.takeProbe = async (id) => {
        const rows = [...(store.parked.get(id)?.values() ?? [])];
        const row = rows.find(({ delivery }) => choked.has(`${delivery.place.ms}-${delivery.place.seq}`)) ?? rows.at(-1);
        const parked = row && {
          ...row,
          sinceFirstMs: Date.now() - row.parkedAt,
          dueInMs: (row.dueAt ?? 0) - Date.now(),
          revision: '',
          bytes: 0,
        };
        return { parked: parked ? [parked] : [], inFlight: false };
      };
    },
  },
  {
    name: 'the lanes of a webhook know no emitters',
    detectedBy: 4,
    replica: (replica) => {
      const dispatcher = dispatcherOf(replica);
      const firstAttempt = dispatcher.firstAttempt.bind(dispatcher);
      let n = 0;
      dispatcher.firstAttempt = (...delivery) => ({ ...firstAttempt(...delivery), lane: `${delivery[0].webhookId} ${(n += 1)}` });
    },
  },
  {
    name: 'new deliveries of another replica keep waiting here',
    detectedBy: 5,
    replica: (replica) => {
      const dispatcher = dispatcherOf(replica);
      const firstAttempt = dispatcher.firstAttempt.bind(dispatcher);
      dispatcher.firstAttempt = (...delivery) => ({ ...firstAttempt(...delivery), drop: undefined });
    },
  },
  {
    name: 'a slow attempt releases its lane without spilling its webhook',
    detectedBy: 1,
    replica: (replica) => {
      dispatcherOf(replica).parkInFlight = async (attempt) => {
        attempt.done();
        return false;
      };
    },
  },
  {
    name: 'arrivals do not wait while a webhook is closing',
    detectedBy: 1,
    replica: (replica) => {
      const { targets } = replica;
      const load = targets.load.bind(targets);
      targets.load = async (id) => {
        const target = await load(id);
        return target?.mode === 'closing' ? { ...target, mode: 'direct' } : target;
      };
    },
  },
  {
    name: 'an older state of a webhook replaces a newer one',
    detectedBy: 11,
    replica: (replica) => {
      const { targets } = replica;
      const load = targets.load.bind(targets);
      const old = new Map<string, Target | undefined>();
      targets.load = async (id) => {
        const target = await load(id);
        const before = old.get(id) ?? target;
        old.set(id, target);
        return before;
      };
    },
  },
  {
    name: 'work in progress is committed as done',
    detectedBy: 1,
    replica: (replica) => {
      const partitions = replica.intake as unknown as { partitions: Map<string, { watermark: { next: number } }> };
      const uncommitted = replica.intake.uncommitted.bind(replica.intake);
      replica.intake.uncommitted = () =>
        uncommitted().map((progress) => {
          const { watermark } = partitions.partitions.get(`${progress.topic}/${progress.partition}`)!;
          return { ...progress, ended: [{ from: progress.offset, to: watermark.next }] };
        });
    },
  },
  {
    name: 'the breaker never opens',
    detectedBy: 1,
    replica: (replica) => {
      const of = replica.receivers.of.bind(replica.receivers);
      replica.receivers.of = (id) => {
        const line = of(id);
        line.breaker.failedWith = () => {};
        return line;
      };
    },
  },
  {
    name: 'each attempt has a different webhook-id',
    detectedBy: 1,
    replica: (replica) => {
      const make = replica.attempts.make.bind(replica.attempts);
      replica.attempts.make = (target, delivery, step) => make(target, { ...delivery, emitId: `${delivery.emitId} ${step.tries}` }, step);
    },
  },
  {
    name: 'a delivery that could not be written down is attempted again',
    detectedBy: 2,
    replica: (replica) => {
      const make = replica.attempts.make.bind(replica.attempts);
      replica.attempts.make = async (target, delivery, step) => {
        const outcome = await make(target, delivery, step);
        const isRepeated = step.tries === 1 && outcome.verdict === 'delivered' && delivery.place.seq % 7 === 0;
        return isRepeated ? make(target, delivery, step) : outcome;
      };
    },
  },
];
