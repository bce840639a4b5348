import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Optional } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { LessThan, MoreThan } from 'typeorm';
import {
  type EmitterId,
  type EmitterState,
  findEmitters,
  type FindEmitters,
  findNewEmitters,
  isId,
  kindOfId,
  NotFound,
  Unavailable,
  type UserId,
} from '#contracts';
import { Database, JointWrites, Lookups, NOW_MS, type Session, type Transaction } from '#database';
import { inHalves, Lanes, Messages } from '#messaging';
import { within } from '#service';
import { Emitter } from './emitter.entity.js';

/** A state that is newer than the one that the app knew. */
export interface EmitterChange {
  state: EmitterState;
  /** The app did not know the emitter. */
  first: boolean;
}

/** An app's additional work in the transaction that applies changes of emitters. */
export abstract class EmitterChangeHandler {
  /** Whether it has work for a change of how an emitter runs, which neither begins nor ends it, nor switches it on or off. */
  readonly needsConfigured: boolean = false;

  /** changes: each of another emitter. */
  abstract emittersChanged(transaction: Transaction, changes: EmitterChange[]): Promise<void>;
}

const UNKNOWN_FOR_MS = 1000;
/** The most states of new emitters that share a transaction. */
const LEARNT_TOGETHER = 64;
/** The most states of known emitters that do: it locks their rows. */
const CONFIGURED_TOGETHER = 16;
/** Transactions that end emitters or switch them off: each may take minutes, and the pool has 10 or 20 connections. */
const ENDED_AT_A_TIME = 4;
/** Between two queries for workflows: one that is not registered may be at any moment, but a producer may emit in its name at a high rate. */
const WORKFLOWS_EVERY_MS = 20;
/** The most emitters of one query, without their deployments and with them: the size of a reply has a limit, and a deployment may have half a megabyte. */
const ASKED_TOGETHER = 500;
const ASKED_WITH_DEPLOYMENTS = 20;
/** For all queries of a call. The caller is reading a topic and sends no heartbeat meanwhile, so this must be well below the session timeout. */
const ASK_TIMEOUT_MS = 4000;
/** The longest wait for an emitter that is being changed or deleted, in ms. */
const HELD_WITHIN_MS = 1000;
/** More than the caller of any announcement waits. */
const ANNOUNCED_WITHIN_MS = 30_000;

/** `until`: when to give up, as from performance.now(). */
type AskOptions = Pick<FindEmitters, 'up_to_date'> & { until?: number };

/** Emitters that are being looked up. */
interface Awaited {
  /** Those that the app has not learnt meanwhile. */
  ids: Set<string>;
  /** Called when it has learnt all of them. */
  resolve(): void;
}

/**
 * The app's table of emitters: owner, active or not. The facts of the catalog keep it current. An emitter
 * that is missing here is looked up in the catalog before it counts as unknown, because a fact can arrive later than an event.
 */
@Injectable()
export class EmitterDirectory {
  /** Sources that the catalog recently did not know: a producer that emits for nonexistent ones must not flood it with queries. */
  private readonly unknown = new LRUCache<string, true>({ max: 10_000, ttl: UNKNOWN_FOR_MS });
  private readonly lookups = new Lookups<string, Emitter>((ids) => this.known(ids));
  private readonly workflows = new Lookups<string, true>(async (ids) => {
    await sleep(Math.max(0, this.workflowsAt + WORKFLOWS_EVERY_MS - performance.now()));
    this.workflowsAt = performance.now();
    await this.lookUp(ids, { up_to_date: true });
    return new Map<string, true>();
  });
  /** When workflows were last looked up, as from performance.now(). */
  private workflowsAt = -Infinity;
  private readonly learning = new JointWrites<EmitterState, boolean>((states) => this.store(states), LEARNT_TOGETHER);
  private readonly configuring = new JointWrites<EmitterState, boolean>((states) => this.configure(states), CONFIGURED_TOGETHER);
  private readonly ending = new Lanes({ concurrency: ENDED_AT_A_TIME });
  /** The states that are being stored, by emitter. */
  private readonly storing = new Map<string, { version: number; stored: Promise<boolean> }>();
  private readonly awaited = new Set<Awaited>();

  constructor(
    private readonly database: Database,
    private readonly messages: Messages,
    @Optional() private readonly handler?: EmitterChangeHandler,
  ) {}

  /**
   * The given emitters that exist or have existed, by id. Looks up missing ones in the catalog, many with one query, and workflows that were removed, because
   * they may have returned. Sources that were deleted more than eight days ago may be missing. While the catalog does not respond, their facts are enough, also
   * those that another replica has read.
   */
  async find(ids: string[]): Promise<Map<string, Emitter>> {
    const wanted = [...new Set(ids)];
    const found = await this.known(wanted);
    const missing = wanted.filter((id) => isUncertain(found.get(id)) && !this.unknown.has(id));
    if (missing.length === 0) return found;
    const failed = await this.untilLearnt(missing).then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
    const learnt = await this.known(missing);
    if (failed && missing.some((id) => isUncertain(learnt.get(id)))) throw failed.error;
    return new Map([...found, ...learnt]);
  }

  /** Resolves when the catalog has replied, or the facts of all of them have arrived. */
  private async untilLearnt(ids: string[]): Promise<void> {
    const { promise: factsArrived, resolve } = Promise.withResolvers<void>();
    const awaited: Awaited = { ids: new Set(ids), resolve };
    this.awaited.add(awaited);
    try {
      const byKind = Map.groupBy(ids, (id) => isId('workflow', id));
      const workflows = (byKind.get(true) ?? []).map((id) => this.workflows.get(id));
      const lookups = Promise.all([this.lookUp(byKind.get(false) ?? []), ...workflows]);
      const late = (): Error => new Unavailable(`the catalog has not replied within ${ASK_TIMEOUT_MS} ms`);
      await within(ASK_TIMEOUT_MS, Promise.race([lookups, factsArrived]), late);
    } finally {
      this.awaited.delete(awaited);
    }
  }

  private async lookUp(ids: string[], options: Pick<AskOptions, 'up_to_date'> = {}): Promise<void> {
    const until = performance.now() + ASK_TIMEOUT_MS;
    for (let start = 0; start < ids.length; start += this.askedTogether) {
      const some = ids.slice(start, start + this.askedTogether);
      const states = await this.ask(some, { ...options, until });
      await Promise.all(states.map((state) => this.learn(state)));
      const existing = new Set(states.map((state) => state.emitter_id as string));
      for (const id of some) if (!existing.has(id) && !isId('workflow', id)) this.unknown.set(id, true);
    }
  }

  /** The owner's emitter; undefined if it does not exist, is deleted or belongs to another account. */
  async findOwned(ownerId: UserId, id: string): Promise<Emitter | undefined> {
    const emitter = (await this.find([id])).get(id);
    return emitter && !emitter.deleted && emitter.owner_id === ownerId ? emitter : undefined;
  }

  /** @throws NotFound if the owner has no such emitter */
  async requireOwned(ownerId: UserId, id: EmitterId): Promise<Emitter> {
    const emitter = await this.findOwned(ownerId, id);
    if (!emitter) throw new NotFound(kindOfId(id), id);
    return emitter;
  }

  /** Stores a state, and returns whether it was newer than the stored one. Facts may arrive twice, and later than the reply to a query. */
  async learn(state: EmitterState): Promise<boolean> {
    const { emitter_id, version } = state;
    // a fact arrives at the same time as its announcement
    for (let other; (other = this.storing.get(emitter_id));) {
      if (other.version >= version) return other.stored.then(() => false);
      await other.stored.catch(() => {});
    }
    const stored = this.storeNewer(state);
    this.storing.set(emitter_id, { version, stored });
    try {
      const isNewer = await stored;
      // its removal may be older than its return
      if (!isUncertain(state)) for (const { ids, resolve } of this.awaited) if (ids.delete(emitter_id) && ids.size === 0) resolve();
      return isNewer;
    } finally {
      this.storing.delete(emitter_id);
    }
  }

  /**
   * As `learn`, for an announcement. Throws Unavailable at the deadline, in ms since the epoch, when nobody waits any more: the change is applied later, and
   * meanwhile the request must not occupy the service.
   */
  learnAnnounced(state: EmitterState, deadline: number): Promise<boolean> {
    return within(
      Math.min(deadline - Date.now(), ANNOUNCED_WITHIN_MS),
      this.learn(state),
      () => new Unavailable('the change is not applied yet'),
    );
  }

  /** Resolves when no state of the emitter is being stored by this process; others may see a state before its handler has ended. */
  async learnt(id: string): Promise<void> {
    await this.storing.get(id)?.stored.catch(() => {});
  }

  /**
   * As `learn`, but the end of an emitter counts only if the catalog agrees. After a restore of the databases, the topic still has the deletions and
   * deactivations that were undone by it, and the service reads them again: it would delete what belongs to emitters that the catalog has.
   */
  async learnFromTopic(state: EmitterState): Promise<boolean> {
    // its announcement arrives at the same time
    if (!state.active) await this.learnt(state.emitter_id);
    const known = state.active ? undefined : await this.look(state.emitter_id);
    const isEnd = known && !known.deleted && known.version < state.version && (state.deleted || known.active);
    const [current] = isEnd ? await this.ask([state.emitter_id]) : [];
    // an emitter that was deleted and created again is another one
    return this.learn(current && current.created_at_ms <= state.created_at_ms ? current : state);
  }

  /**
   * Learns the sources that the account has created a moment ago: their facts may not have arrived. For work whose result depends on which emitters the
   * account has.
   */
  async learnNew(ownerId: UserId): Promise<void> {
    const ids = await this.messages.request(findNewEmitters, { owner_id: ownerId }, { account: ownerId, timeoutMs: ASK_TIMEOUT_MS });
    for (const id of ids) this.unknown.delete(id);
    await this.find(ids);
  }

  /**
   * Learns the current states of all emitters that the app has, also that they were removed. A source that the catalog does not have was deleted. For the time after
   * Kafka has lost facts, which the app may not have read. Returns how many states were new.
   */
  async learnAll(): Promise<number> {
    for (let [count, after] = [0, '']; ;) {
      const emitters = await this.existing(after);
      const last = emitters.at(-1);
      if (!last) return count;
      const states = await this.ask(emitters.map(({ id }) => id));
      const current = new Map(states.map((state) => [state.emitter_id as string, state]));
      for (const emitter of emitters) {
        const state = current.get(emitter.id) ?? (emitter.kind === 'source' ? endOf(emitter) : undefined);
        // most are unchanged, and `learn` would look up each of them again
        if (state && state.version > emitter.version && (await this.learn(state))) count += 1;
      }
      after = last.id;
    }
  }

  /** The next emitters, by id, that are not deleted. */
  private async existing(after: string): Promise<Emitter[]> {
    const emitters = this.database.rows(Emitter);
    return emitters.find({ where: { deleted: false, id: MoreThan(after) }, order: { id: 'ASC' }, take: this.askedTogether });
  }

  private get askedTogether(): number {
    return this.handler?.needsConfigured ? ASKED_WITH_DEPLOYMENTS : ASKED_TOGETHER;
  }

  private ask(ids: string[], { until = performance.now() + ASK_TIMEOUT_MS, ...options }: AskOptions = {}): Promise<EmitterState[]> {
    return inHalves(ids, (some) => {
      const query = { ids: some, ...options, ...(!this.handler?.needsConfigured && { without_deployments: true }) };
      return this.messages.request(findEmitters, query, {
        account: null,
        key: some[0] ?? '',
        timeoutMs: Math.max(1, until - performance.now()),
      });
    });
  }

  private async storeNewer(state: EmitterState): Promise<boolean> {
    // even a transaction that changes nothing would be written to disk
    const stored = await this.look(state.emitter_id);
    if (!stored) return this.learning.add(state);
    if (stored.version >= state.version) return false;
    if (isConfigured(stored, state) && (await this.configuring.add(state))) return true;
    const store = async (): Promise<boolean> => (await this.store([state])).includes(true);
    // one at a time of an account; the accounts take turns, and take no connection before
    return mayTakeLong(state) ? this.ending.execute(state.owner_id, store) : store();
  }

  /**
   * Stores changes of how emitters run together. Returns which ones it has stored: not those that are older or different meanwhile, or locked by another
   * transaction. It waits for no lock, because others lock emitters in any order, and a deletion takes long.
   */
  private configure(states: EmitterState[]): Promise<boolean[]> {
    return this.storeAndHandle(states, renew, this.handler?.needsConfigured ? this.handler : undefined);
  }

  /** Stores states together: of several emitters only if they are new, because others lock known ones, in any order, and a deletion takes long. */
  private store(states: EmitterState[]): Promise<boolean[]> {
    return this.storeAndHandle(states, storeNewest, this.handler);
  }

  /** Stores states, and handles those that were stored in the same transaction. Returns which ones these are. */
  private async storeAndHandle(states: EmitterState[], write: Write, handler: EmitterChangeHandler | undefined): Promise<boolean[]> {
    // in the order of the ids: two replicas would otherwise wait for each other
    const ordered = [...states].sort((a, b) => (a.emitter_id < b.emitter_id ? -1 : 1));
    const stored = handler
      ? await this.database.transaction(async (transaction) => {
          const newer = await write(transaction, ordered);
          const changes = ordered.flatMap((state): EmitterChange[] => {
            const first = newer.get(state.emitter_id);
            return first === undefined ? [] : [{ state, first }];
          });
          if (changes.some(({ state }) => mayTakeLong(state))) transaction.takeLong();
          if (changes.length > 0) await handler.emittersChanged(transaction, changes);
          return newer;
        })
      : await write(this.database, ordered);
    return states.map(({ emitter_id }) => stored.has(emitter_id));
  }

  /**
   * Locks an emitter against its deletion until the transaction ends. False if the owner has no such emitter. Fails, as for a database that is down, if the
   * emitter is being deleted for longer than a second: each caller that waits has a connection.
   */
  async hold(transaction: Transaction, ownerId: UserId, id: string): Promise<boolean> {
    const { rowCount } = await transaction.query(
      `SELECT FROM emitter, set_config('lock_timeout', '${HELD_WITHIN_MS}', true) WHERE owner_id = $1 AND id = $2 AND NOT deleted FOR SHARE OF emitter`,
      [ownerId, id],
    );
    return rowCount === 1;
  }

  /** An emitter that the table has. Calls at the same time share a query. */
  look(id: string): Promise<Emitter | undefined> {
    return this.lookups.get(id);
  }

  /** Those of the emitters that the table has, by id. Prepared SQL: each batch of events begins with it. */
  async known(ids: string[]): Promise<Map<string, Emitter>> {
    const { rows } = await this.database.query<Emitter>({
      name: 'emitter-look',
      text: 'SELECT id, owner_id, kind, active, deleted, version, created_at_ms FROM emitter WHERE id = ANY($1)',
      values: [ids],
    });
    return new Map(rows.map((row) => [row.id, row]));
  }
}

/** Stores those of the states that are newer. Returns them by id, and whether the emitter was unknown. */
type Write = (session: Session, states: EmitterState[]) => Promise<Map<string, boolean>>;

/** Stores newer states. */
async function storeNewest(session: Session, states: EmitterState[]): Promise<Map<string, boolean>> {
  const { rows } = await session.query<{ id: string; first: boolean }>({
    name: 'emitters-learn',
    // one statement stores newer states and returns whether the emitters were unknown: xmax = 0 distinguishes an inserted row from an updated one
    text: `INSERT INTO emitter (id, owner_id, kind, active, deleted, version, created_at_ms, deleted_at_ms)
           SELECT *, CASE WHEN deleted THEN ${NOW_MS} ELSE 0 END
           FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[], $5::boolean[], $6::bigint[], $7::bigint[])
             AS state (id, owner_id, kind, active, deleted, version, created_at_ms)
           ON CONFLICT (id) DO UPDATE SET active = excluded.active, deleted = excluded.deleted, version = excluded.version,
             activated_at_ms = CASE WHEN excluded.active > emitter.active THEN ${NOW_MS} ELSE emitter.activated_at_ms END,
             deactivated_at_ms = CASE WHEN excluded.active < emitter.active THEN ${NOW_MS} ELSE emitter.deactivated_at_ms END,
             deleted_at_ms = CASE WHEN excluded.deleted > emitter.deleted THEN ${NOW_MS} ELSE emitter.deleted_at_ms END
           WHERE emitter.version < excluded.version
           RETURNING id, xmax = 0 AS first`,
    values: (['emitter_id', 'owner_id', 'kind', 'active', 'deleted', 'version', 'created_at_ms'] as const).map((column) =>
      states.map((state) => state[column]),
    ),
  });
  return new Map(rows.map(({ id, first }) => [id, first]));
}

/** Of known emitters that are as active as these states, stores the newer versions. */
async function renew(session: Session, states: EmitterState[]): Promise<Map<string, boolean>> {
  const { rows } = await session.query<{ id: string }>({
    name: 'emitters-renew',
    text: `UPDATE emitter SET version = newer.version
           FROM unnest($1::text[], $2::bigint[], $3::boolean[]) AS newer (id, version, active)
           WHERE emitter.id = newer.id AND emitter.version < newer.version AND emitter.active = newer.active AND NOT emitter.deleted
             AND emitter.id IN (SELECT id FROM emitter WHERE id = ANY($1) FOR NO KEY UPDATE SKIP LOCKED)
           RETURNING emitter.id`,
    values: (['emitter_id', 'version', 'active'] as const).map((column) => states.map((state) => state[column])),
  });
  return new Map(rows.map(({ id }) => [id, false]));
}

/** Whether the catalog may have an emitter that is not known, or has been removed according to what is known. */
export const isUncertain = (known: Pick<Emitter, 'deleted' | 'kind'> | undefined): boolean =>
  !known || (known.deleted && known.kind === 'workflow');

/** The state of a source that does not exist any more. */
const endOf = ({ id, kind, owner_id, version, created_at_ms }: Emitter): EmitterState => ({
  ...{ emitter_id: id as EmitterId, kind, owner_id, created_at_ms, version: version + 1 },
  ...{ active: false, deleted: true, name: '' },
});

/** Whether much may have to be deleted: the events of a deleted emitter, or the runs that wait for one that is not active any more. */
const mayTakeLong = ({ deleted, active }: EmitterState): boolean => deleted || !active;

/** Whether only its configuration has changed. */
const isConfigured = (known: Emitter, { owner_id, active, deleted, created_at_ms }: EmitterState): boolean =>
  !known.deleted && !deleted && known.active === active && known.owner_id === owner_id && known.created_at_ms === created_at_ms;

/** Returns whether the emitter was created again after it was deleted: then its time of creation is updated. */
export async function updateCreation(transaction: Transaction, { owner_id, emitter_id, created_at_ms }: EmitterState): Promise<boolean> {
  const { affected } = await transaction
    .rows(Emitter)
    .update({ owner_id, id: emitter_id, created_at_ms: LessThan(created_at_ms) }, { created_at_ms });
  return affected === 1;
}
