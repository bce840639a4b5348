import type { UserId, WebhookId } from '#contracts';
import type { EventPlace } from '#events';
import type { AccountRecord } from '#outbox';
import { type Attempt, type Delivery, OVERHEAD_BYTES } from '../delivery.js';
import {
  type Claim,
  DeliveryStore,
  type Except,
  type Failed,
  type NextLook,
  type Parked,
  type Renewed,
  type ReportOf,
  type SettleOptions,
  type Settlement,
  type Shares,
  type Taken,
  type TakeOptions,
} from './delivery-store.js';
import { type Attempted, type Mode, REPORT_EVERY_MS, type TargetRow } from '../../webhooks/webhooks.repository.js';

interface Hook extends TargetRow {
  spilled: boolean;
  closingUntil: number;
  failingSince: number | null;
  lastFailedAt: number;
  reportedAt: number;
}

interface Row {
  delivery: Delivery;
  fresh: boolean;
  attempts: Attempt[];
  tries: number;
  /** null: given up. */
  dueAt: number | null;
  /** When its schedule would attempt it, if a user has requested an earlier attempt. */
  scheduledAt?: number;
  /** How often a user has requested an attempt. */
  requests: number;
  inFlightUntil: number;
  parkedAt: number;
}

interface Backlog {
  nextDue: number;
  failedProbes: number | null;
  leaseId: string | null;
  leasedUntil: number;
  wakes: number;
}

const newBacklog = (nextDue: number, failedProbes: number | null = null): Backlog => ({
  nextDue,
  failedProbes,
  leaseId: null,
  leasedUntil: 0,
  wakes: 0,
});

const byPlace = (a: { delivery: { place: EventPlace } }, b: { delivery: { place: EventPlace } }): number =>
  a.delivery.place.ms - b.delivery.place.ms || a.delivery.place.seq - b.delivery.place.seq;
const keyOf = ({ ms, seq }: EventPlace): string => `${ms}-${seq}`;

/** For claims in which no account reaches its share. */
export const UNSHARED: Shares = { most: 1000, taken: new Map() };

/** The store without a database: for tests, and for a simulation whose time is not the clock's. */
export class DeliveryStoreInMemory extends DeliveryStore {
  readonly hooks = new Map<WebhookId, Hook>();
  /** Published about webhooks that were disabled, and deliveries that were given up. */
  readonly published: AccountRecord[] = [];
  readonly parked = new Map<WebhookId, Map<string, Row>>();
  readonly backlogs = new Map<WebhookId, Backlog>();

  addWebhook(id: WebhookId, ownerId: UserId, change: Partial<Hook> = {}): void {
    const plain = {
      version: 1,
      active: true,
      giving_up: false,
      mode: 'direct' as const,
      rate_limit: null,
      previous_secrets: null,
    };
    const url = `http://${id.toLowerCase().replaceAll('_', '-')}.test/`;
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    const hook: Hook = {
      id,
      owner_id: ownerId,
      url,
      secret,
      ...plain,
      spilled: false,
      closingUntil: 0,
      failingSince: null,
      lastFailedAt: 0,
      reportedAt: -Infinity,
      ...change,
    };
    this.hooks.set(id, hook);
    this.parked.set(id, new Map());
    if (hook.spilled) this.backlogs.set(id, newBacklog(Infinity));
  }

  async findTargets(ids: WebhookId[]): Promise<TargetRow[]> {
    return ids.flatMap((id) => {
      const hook = this.hooks.get(id);
      return hook ? [{ ...hook, mode: this.modeOf(hook) }] : [];
    });
  }

  async parkFresh(webhookId: WebhookId, deliveries: Delivery[]): Promise<Mode | 'gone'> {
    const hook = this.hooks.get(webhookId);
    if (!hook) return 'gone';
    const mode = this.modeOf(hook);
    if (mode !== 'spilled') return mode;
    for (const delivery of deliveries) this.add(delivery, { fresh: true, attempts: [], tries: 0, dueAt: Date.now(), inFlightUntil: 0 });
    this.wake(webhookId);
    return mode;
  }

  async parkInFlight(delivery: Delivery, leaseMs: number): Promise<string | undefined> {
    if (!this.beginSpill(delivery.webhookId)) return undefined;
    const row = this.add(delivery, { fresh: true, attempts: [], tries: 0, dueAt: Date.now(), inFlightUntil: Date.now() + leaseMs });
    this.wake(delivery.webhookId);
    return row && revisionOf(row);
  }

  async parkFailed(failed: Failed, report?: ReportOf): Promise<Failed[]> {
    const { delivery, attempts, tries, pauseMs } = failed;
    if (!this.hooks.has(delivery.webhookId)) return [];
    const dueAt = pauseMs === null ? null : Date.now() + pauseMs;
    if (!this.add(delivery, { fresh: false, attempts, tries, dueAt, inFlightUntil: 0 })) return [];
    if (dueAt === null) return this.reported(delivery.webhookId, [failed], report);
    const backlog = this.backlogs.get(delivery.webhookId);
    if (!backlog) this.backlogs.set(delivery.webhookId, newBacklog(dueAt));
    else if (backlog.failedProbes === null) backlog.nextDue = Math.min(backlog.nextDue, dueAt);
    return [];
  }

  async spill(webhookId: WebhookId): Promise<void> {
    if (this.beginSpill(webhookId)) this.wake(webhookId);
  }

  async openBreaker({ id, url }: Attempted, probeInMs: number): Promise<boolean> {
    if (this.hooks.get(id)?.url !== url) return false;
    this.beginSpill(id);
    const backlog = this.backlogs.get(id);
    if (!backlog) this.backlogs.set(id, newBacklog(Date.now() + probeInMs, 0));
    else if (backlog.failedProbes === null) Object.assign(backlog, { nextDue: Date.now() + probeInMs, failedProbes: 0 });
    return true;
  }

  async settle(webhookId: WebhookId, settlements: Settlement[], { leaseId, report }: SettleOptions = {}): Promise<Failed[]> {
    const givenUp: Failed[] = [];
    const counts = ({ fresh }: Row) => (leaseId === undefined ? fresh : this.leased({ webhookId, leaseId }) !== undefined);
    const rows = this.parked.get(webhookId);
    for (const settlement of settlements) {
      const key = keyOf(settlement.delivery.place);
      const row = rows?.get(key);
      if (!row) continue;
      if (settlement.delivered) rows?.delete(key);
      else if (counts(row)) {
        const { attempts, tries, pauseMs, revision } = settlement;
        const { fresh, dueAt, parkedAt } = row;
        Object.assign(row, { fresh: false, inFlightUntil: 0, attempts });
        const isRequestedSince = revision !== undefined && revision !== revisionOf(row) && (fresh || dueAt === parkedAt);
        if (isRequestedSince) row.dueAt = dueAt === null ? null : parkedAt;
        else {
          if (fresh) row.parkedAt = Date.now();
          Object.assign(row, { tries, scheduledAt: undefined, dueAt: dueAt === null || pauseMs === null ? null : Date.now() + pauseMs });
        }
        if (pauseMs === null && row.dueAt === null) givenUp.push(settlement);
      }
    }
    const backlog = this.backlogs.get(webhookId);
    if (backlog && backlog.failedProbes === null) backlog.nextDue = Math.min(backlog.nextDue, Date.now());
    return this.reported(webhookId, givenUp, report);
  }

  async markFailing({ id, url }: Attempted, pauseMs: number): Promise<void> {
    const hook = this.hooks.get(id);
    if (hook?.url !== url) return;
    if (Date.now() - hook.lastFailedAt > pauseMs) hook.failingSince = null;
    hook.failingSince ??= Date.now();
    hook.lastFailedAt = Date.now();
  }

  async disable({ id, url }: Attempted, reports: AccountRecord[], ifFailingForMs?: number): Promise<boolean> {
    const hook = this.hooks.get(id);
    if (!hook?.active || hook.url !== url) return false;
    if (ifFailingForMs !== undefined && !(hook.failingSince !== null && hook.failingSince < Date.now() - ifFailingForMs)) return false;
    hook.active = false;
    hook.giving_up = true;
    hook.version += 1;
    this.wakeNow(id);
    this.published.push(...reports);
    return true;
  }

  /** A user switches the webhook on or off. */
  setActive(webhookId: WebhookId, active: boolean): void {
    const hook = this.hooks.get(webhookId);
    if (!hook) return;
    hook.active = active;
    hook.version += 1;
    if (!active) return;
    Object.assign(hook, { failingSince: null, giving_up: false });
    const backlog = this.backlogs.get(webhookId);
    if (backlog || hook.spilled) this.wakeNow(webhookId);
    if (backlog) backlog.failedProbes = null;
  }

  /** A user requests an attempt. */
  retry(webhookId: WebhookId, place: EventPlace): void {
    const row = this.parked.get(webhookId)?.get(keyOf(place));
    if (!row) return;
    const { fresh, dueAt, scheduledAt, tries, requests } = row;
    Object.assign(row, {
      dueAt: fresh && dueAt !== null ? dueAt : Date.now(),
      scheduledAt: fresh || dueAt === null ? undefined : (scheduledAt ?? dueAt),
      tries: dueAt === null ? 0 : tries,
      parkedAt: Date.now(),
      requests: requests + 1,
    });
    this.wakeNow(webhookId);
  }

  async giveUp(webhookId: WebhookId): Promise<number> {
    const hook = this.hooks.get(webhookId);
    if (!hook?.giving_up) return 0;
    const waiting = this.rows(webhookId).filter(({ dueAt }) => dueAt !== null);
    for (const row of waiting) row.dueAt = null;
    if (waiting.length === 0) hook.giving_up = false;
    return waiting.length;
  }

  async msToNext(): Promise<number | null> {
    return Math.min(...[...this.backlogs.values()].map(({ nextDue, leasedUntil }) => Math.max(nextDue, leasedUntil))) - Date.now();
  }

  /** One store serves several replicas: each of them knows what it has written. */
  listen(): void {}

  async claim(limit: number, leaseId: string, leaseMs: number, { most, taken }: Shares): Promise<Claim[]> {
    const nths = new Map(taken);
    return [...this.backlogs]
      .filter(([, { nextDue, leasedUntil }]) => nextDue <= Date.now() && leasedUntil <= Date.now())
      .sort(([, a], [, b]) => a.nextDue - b.nextDue)
      .flatMap(([webhookId, backlog]) => {
        const ownerId = this.hooks.get(webhookId)?.owner_id;
        if (ownerId === undefined) return [];
        const nth = (nths.get(ownerId) ?? 0) + 1;
        nths.set(ownerId, nth);
        return [{ webhookId, ownerId, backlog, nth }];
      })
      .filter(({ nth }) => nth <= most)
      .sort((a, b) => a.nth - b.nth)
      .slice(0, limit)
      .map(({ webhookId, ownerId, backlog }) => {
        Object.assign(backlog, { leaseId, leasedUntil: Date.now() + leaseMs });
        return { webhookId, ownerId, leaseId, wakes: backlog.wakes };
      });
  }

  async renew(claim: Claim, leaseMs: number): Promise<Renewed | undefined> {
    const backlog = this.leased(claim);
    if (!backlog) return undefined;
    backlog.leasedUntil = Date.now() + leaseMs;
    return { failedProbes: backlog.failedProbes, wakes: backlog.wakes };
  }

  async take(webhookId: WebhookId, limit: number, { bytes = Infinity, except }: TakeOptions = {}): Promise<Taken> {
    const excepted = new Set(except?.places.map(keyOf));
    const rows = this.rows(webhookId).filter(({ delivery }) => !excepted.has(keyOf(delivery.place)));
    const inFlight = this.inFlight(webhookId);
    const heldUp = new Set([...inFlight.map(({ delivery }) => delivery.emitterId), ...(except?.emitters ?? [])]);
    const fresh = rows.filter((row) => row.fresh && row.dueAt !== null && !heldUp.has(row.delivery.emitterId)).sort(byPlace);
    const due = rows
      .filter((row) => !row.fresh && row.dueAt !== null && row.dueAt <= Date.now())
      .sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0));
    let latest = 0;
    const since = new Map(fresh.map((row) => [row, (latest = Math.max(latest, row.dueAt ?? 0))]));
    const sinceOf = (row: Row): number => since.get(row) ?? row.dueAt ?? 0;
    const longest = [...fresh.slice(0, limit), ...due.slice(0, limit)].sort((a, b) => sinceOf(a) - sinceOf(b) || byPlace(a, b));
    let left = bytes;
    const fitting = longest.slice(0, limit).filter((row, nth) => (left -= bytesOf(row)) >= 0 || nth === 0);
    return { parked: fitting.sort(byPlace).map(parkedOf), inFlight: fitting.length < limit && inFlight.length > 0 };
  }

  async findTakeable(backlogs: { webhookId: WebhookId; except: Except }[]): Promise<ReadonlySet<WebhookId>> {
    const found = new Set<WebhookId>();
    for (const { webhookId, except } of backlogs) if ((await this.take(webhookId, 1, { except })).parked.length > 0) found.add(webhookId);
    return found;
  }

  async takeProbe(webhookId: WebhookId, failedProbes: number): Promise<Taken> {
    const inFlight = this.inFlight(webhookId);
    const heldUp = new Set(inFlight.map(({ delivery }) => delivery.emitterId));
    const rows = this.rows(webhookId).filter(({ dueAt }) => dueAt !== null);
    const dueInMs = ({ dueAt }: Row): number => (dueAt ?? Infinity) - Date.now();
    const [fresh] = rows.filter((row) => row.fresh && !heldUp.has(row.delivery.emitterId)).sort(byPlace);
    const tried = rows
      .filter((row) => !row.fresh)
      .sort((a, b) => dueInMs(a) - dueInMs(b))
      .slice(0, 20);
    const [first] = tried;
    const requested = tried.find(({ requests, dueAt, parkedAt }) => requests > 0 && dueAt === parkedAt);
    const row = requested ?? fresh ?? (first && dueInMs(first) <= 0 ? first : tried[failedProbes % tried.length]);
    return { parked: row ? [parkedOf(row)] : [], inFlight: !row && inFlight.length > 0 };
  }

  async closeBreaker(claim: Claim): Promise<void> {
    const backlog = this.leased(claim);
    if (backlog) Object.assign(backlog, { failedProbes: null, nextDue: Date.now() });
  }

  async startClosing({ webhookId }: Claim, forMs: number): Promise<void> {
    const hook = this.hooks.get(webhookId);
    if (!hook?.spilled) return;
    hook.closingUntil = Date.now() + forMs;
    hook.version += 1;
  }

  async finishClosing(claim: Claim, restMs = 0): Promise<'direct' | 'more'> {
    const { webhookId } = claim;
    if (this.rows(webhookId).some(({ fresh, dueAt }) => fresh && dueAt !== null)) return 'more';
    const backlog = this.leased(claim);
    if (!backlog) return 'direct';
    if (backlog.failedProbes !== null) return 'more';
    const hook = this.hooks.get(webhookId);
    const limited = (hook?.rate_limit ?? null) !== null;
    if (hook && (hook.spilled !== limited || hook.closingUntil > 0)) {
      Object.assign(hook, { spilled: limited, closingUntil: 0 });
      hook.version += 1;
    }
    this.releaseUntilDue(claim, restMs);
    return 'direct';
  }

  async release(claim: Claim, next: NextLook, restMs = 0): Promise<void> {
    const backlog = this.leased(claim);
    if (!backlog) return;
    if (next.when === 'next due') return this.releaseUntilDue(claim, restMs);
    Object.assign(backlog, { leaseId: null, leasedUntil: Date.now() + restMs });
    if (backlog.wakes !== claim.wakes) return void (backlog.nextDue = Date.now());
    if (next.when !== 'unchanged') backlog.nextDue = Date.now() + next.inMs;
    if (next.when === 'probe') backlog.failedProbes = next.failedProbes;
  }

  private reported(webhookId: WebhookId, givenUp: Failed[], report: ReportOf | undefined): Failed[] {
    const hook = this.hooks.get(webhookId);
    const record = report?.(givenUp);
    if (record && hook && Date.now() - hook.reportedAt >= REPORT_EVERY_MS) {
      hook.reportedAt = Date.now();
      this.published.push(record);
    }
    return givenUp;
  }

  private rows(webhookId: WebhookId): Row[] {
    return [...(this.parked.get(webhookId)?.values() ?? [])];
  }

  private inFlight(webhookId: WebhookId): Row[] {
    return this.rows(webhookId).filter(({ inFlightUntil }) => inFlightUntil > Date.now());
  }

  private add(delivery: Delivery, added: Omit<Row, 'delivery' | 'parkedAt' | 'requests'>): Row | undefined {
    const rows = this.parked.get(delivery.webhookId);
    const key = keyOf(delivery.place);
    if (!rows || rows.has(key)) return undefined;
    const row = { delivery, ...added, parkedAt: Date.now(), requests: 0 };
    rows.set(key, row);
    return row;
  }

  private modeOf({ spilled, closingUntil }: Hook): Mode {
    if (!spilled) return 'direct';
    return closingUntil > Date.now() ? 'closing' : 'spilled';
  }

  private beginSpill(webhookId: WebhookId): boolean {
    const hook = this.hooks.get(webhookId);
    if (!hook) return false;
    if (!hook.spilled || hook.closingUntil > 0) {
      Object.assign(hook, { spilled: true, closingUntil: 0 });
      hook.version += 1;
    }
    return true;
  }

  private wake(webhookId: WebhookId): void {
    const backlog = this.backlogs.get(webhookId);
    if (!backlog) this.backlogs.set(webhookId, newBacklog(Date.now()));
    else if (backlog.failedProbes === null) backlog.nextDue = Math.min(backlog.nextDue, Date.now());
  }

  private wakeNow(webhookId: WebhookId): void {
    const backlog = this.backlogs.get(webhookId);
    if (backlog) Object.assign(backlog, { nextDue: Date.now(), wakes: backlog.wakes + 1 });
    else this.wake(webhookId);
  }

  private leased({ webhookId, leaseId }: Pick<Claim, 'webhookId' | 'leaseId'>): Backlog | undefined {
    const backlog = this.backlogs.get(webhookId);
    return backlog?.leaseId === leaseId ? backlog : undefined;
  }

  private releaseUntilDue(claim: Claim, restMs: number): void {
    const backlog = this.leased(claim);
    if (!backlog) return;
    const released = { leaseId: null, leasedUntil: Date.now() + restMs };
    if (backlog.wakes !== claim.wakes) return void Object.assign(backlog, { nextDue: Date.now(), ...released });
    const waiting = this.rows(claim.webhookId).filter(({ dueAt }) => dueAt !== null);
    const dues = waiting.map(({ fresh, dueAt, inFlightUntil }) => (fresh && inFlightUntil > 0 ? inFlightUntil : (dueAt ?? Infinity)));
    if (dues.length === 0 && !this.hooks.get(claim.webhookId)?.spilled) this.backlogs.delete(claim.webhookId);
    else Object.assign(backlog, { nextDue: Math.min(Infinity, ...dues), ...released });
  }
}

const bytesOf = ({ delivery: { json, context }, attempts }: Row): number =>
  json.length + 2 * Buffer.byteLength((context ? JSON.stringify(context) : '') + JSON.stringify(attempts)) + OVERHEAD_BYTES;

const revisionOf = ({ requests }: Row): string => String(requests);

const parkedOf = (row: Row): Parked => {
  const { delivery, fresh, attempts, tries, parkedAt, dueAt, scheduledAt } = row;
  const dueInMs = (scheduledAt ?? dueAt ?? Infinity) - Date.now();
  const sinceFirstMs = fresh ? 0 : Date.now() - parkedAt;
  return { delivery, fresh, attempts, tries, sinceFirstMs, dueInMs, revision: revisionOf(row), bytes: bytesOf(row) };
};
