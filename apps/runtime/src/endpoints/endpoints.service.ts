import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { type EmitterState, executeRun, findEndpoints, isNotFound, TooManyRequests, Unavailable, type UserId } from '#contracts';
import { Lookups } from '#database';
import { EmitterDirectory } from '#emitters';
import { inHalves, Messages } from '#messaging';
import { within } from '#service';
import { CodeCache } from '../components/code-cache.js';
import type { DeploymentRow } from '../deployments/deployment.entity.js';
import { DeploymentsRepository } from '../deployments/deployments.repository.js';
import { AccountPace, BYTES_PER_UNIT, MS_PER_UNIT, REQUEST_UNITS } from '#fairness';
import { LimitPerKey } from '#limits';
import { FullAccounts } from '#waiting-data';
import { Quotas } from '../quotas/quotas.js';
import { overQuota } from '../run-events/error-reports.js';
import type { DueRun } from '../run-events/run-events.js';
import { RunQueue } from '../runs/run-queue.js';
import { RunLanes } from '../runs/run-lanes.js';
import { RunsService } from '../runs/runs.service.js';
import { type HttpReply, KILLED, type RunStatus } from '../sandbox/sandbox.js';

const HTTP_INTERFACE = '$.interface.http';
/** How long an unknown key is remembered, so that the catalog is not queried again. It hides no new endpoint: nobody knows a key before it exists. */
const UNKNOWN_MS = 1000;
/** How long it may take to find an endpoint, and to store a request: as long as a request of the REST API may wait for a service. */
const STORED_WITHIN_MS = 10_000;
/** Anyone can request endpoints that do not exist: they must not occupy the catalog. At most this many of those requests wait for its replies, and they share queries. */
const MAX_UNKNOWN = 500;
const MS_PER_QUERY = 20;
/** The others wait behind a query. */
const QUERY_MS = 4000;
const KEY = /^[A-Za-z0-9]{16,64}$/;

/** Whether a key has the form of an endpoint's. */
export const isEndpointKey = (key: string): boolean => KEY.test(key);

/** How a request is handled: its run is stored, or executed here because its component responds itself; or the request is refused. */
export type Admission = 'store' | 'run here' | 'busy';

/** A request, as the event of its run. */
export type RequestEvent = Pick<DueRun, 'event' | 'http_body'>;

/** The response to a request at an endpoint. */
export type EndpointResponse = HttpReply | 'queued' | 'no response' | 'stopped' | 'not run' | 'over quota' | 'busy';

/** Requests of one account that may wait for a component's response, or for their clients to read it. */
const MAX_WAITING_REQUESTS = 128;
/** Of all accounts: with bodies of 512 KiB, in base64, they take 700 MB of the container's 2 GiB. Six accounts can have their most at a time. */
const MAX_WAITING_REQUESTS_OF_ALL = 1024;
/** A client that disconnects after a longer wait has given up, and may have sent its request again; one that does so before may never read responses. */
const GIVES_UP_AFTER_MS = 5000;

@Injectable()
export class EndpointsService {
  private readonly waiting = new LimitPerKey<UserId>(MAX_WAITING_REQUESTS, MAX_WAITING_REQUESTS_OF_ALL);
  /** Learns what the catalog knows of keys. */
  private readonly queries = new Lookups<string, EmitterState>((keys) => this.query(keys));
  /** The requests that wait for a query. */
  private unknownWaiting = 0;
  private nextQueryAt = 0;
  private readonly unknown = new LRUCache<string, true>({ max: 10_000, ttl: UNKNOWN_MS });

  constructor(
    private readonly deployments: DeploymentsRepository,
    private readonly directory: EmitterDirectory,
    private readonly codes: CodeCache,
    private readonly runs: RunsService,
    private readonly lanes: RunLanes,
    private readonly queue: RunQueue,
    private readonly messages: Messages,
    private readonly pace: AccountPace,
    private readonly quotas: Quotas,
    private readonly full: FullAccounts,
  ) {}

  /**
   * The source behind an endpoint's key, active or not; 'busy' if the key is unknown and too many requests with such keys wait for the catalog. Throws Unavailable if that takes too long.
   */
  async find(key: string): Promise<DeploymentRow | undefined | 'busy'> {
    return isEndpointKey(key) ? within(STORED_WITHIN_MS, this.lookUp(key), tooLate) : undefined;
  }

  private async lookUp(key: string): Promise<DeploymentRow | undefined | 'busy'> {
    let deployment = await this.deployments.findByEndpoint(key);
    if (!deployment && !this.unknown.has(key)) {
      // the first request may overtake the fact of the source's creation
      if (this.unknownWaiting >= MAX_UNKNOWN) return 'busy';
      this.unknownWaiting += 1;
      const state = await this.queries.get(key).finally(() => (this.unknownWaiting -= 1));
      // not in the query, which others share: they do not fail if this source cannot be stored
      if (state) await this.directory.learn(state);
      deployment = await this.deployments.findByEndpoint(key);
    }
    return deployment;
  }

  /** Resolves when a request of the account may be handled. Throws TooManyRequests while too many wait, and while the account is full. */
  async turn(account: UserId): Promise<void> {
    // the sender is not the owner, and need not know what waits
    if (await this.full.isFull(account)) throw new TooManyRequests('too much data of this account is waiting');
    if (await this.pace.requestTurn(account, REQUEST_UNITS)) return;
    throw new TooManyRequests('too many requests to endpoints of this account are waiting');
  }

  /** Counts a request against the pace of its account. @param ms for which it has occupied the main thread */
  handled(account: UserId, { bytes, ms }: { bytes: number; ms: number }): void {
    this.pace.spendOn('request', account, bytes / BYTES_PER_UNIT + ms / MS_PER_UNIT);
  }

  private async query(keys: string[]): Promise<ReadonlyMap<string, EmitterState>> {
    await sleep(Math.max(0, this.nextQueryAt - performance.now()));
    this.nextQueryAt = performance.now() + MS_PER_QUERY;
    const until = performance.now() + QUERY_MS;
    // a deployment may have half a megabyte
    const states = await inHalves(keys, (some) => {
      const timeoutMs = Math.max(1, until - performance.now());
      return this.messages.request(findEndpoints, { endpoint_keys: some }, { account: null, key: some[0] ?? '', timeoutMs });
    });
    const found = new Map(states.map((state) => [state.deployment?.endpoint_key ?? '', state]));
    for (const key of keys) if (!found.has(key)) this.unknown.set(key, true);
    return found;
  }

  /** Decides what needs no body, before the body is read: a request that waits for the catalog then occupies little memory. Throws Unavailable if that takes too long. */
  async admit(deployment: DeploymentRow): Promise<Admission> {
    return within(STORED_WITHIN_MS, this.admission(deployment), tooLate);
  }

  private async admission(deployment: DeploymentRow): Promise<Admission> {
    if (await this.respondsItself(deployment)) return 'run here';
    return (await this.queue.isFull(deployment.owner_id)) ? 'busy' : 'store';
  }

  /** Whether its component responds to requests. Not if the catalog does not have the code: then the run is stored and, when it is due, reported as failed. */
  private async respondsItself({ owner_id, code_hash }: DeploymentRow): Promise<boolean> {
    try {
      const { configurable_props } = await this.codes.description(owner_id, code_hash);
      return configurable_props.some(({ type, customResponse }) => type === HTTP_INTERFACE && customResponse === true);
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  /** Stores a run of the source for a request. The run is durable before this returns. Throws Unavailable if that takes too long. */
  async store(deployment: DeploymentRow, event: RequestEvent): Promise<EndpointResponse> {
    return within(STORED_WITHIN_MS, this.storeRun(runFor(deployment, event), deployment.version), tooLate);
  }

  private async storeRun(run: DueRun, version: number): Promise<EndpointResponse> {
    if (!(await this.quotas.admit(run.owner_id, run.run_id))) {
      await this.quotas.notify(run.source_id, overQuota(run, version, { isRefused: true }));
      return 'over quota';
    }
    // its sender has got 503, and may have sent it again
    if (Date.now() >= run.due_at_ms + STORED_WITHIN_MS) throw tooLate();
    await this.messages.publish(executeRun, run, run.owner_id);
    return 'queued';
  }

  /**
   * Runs the source in this replica, because only the one that holds the request can forward the component's response.
   * @param closed resolves when the response has been sent, or its client has disconnected
   */
  async runHere(deployment: DeploymentRow, event: RequestEvent, closed: Promise<void>): Promise<EndpointResponse> {
    const run = runFor(deployment, event);
    const release = this.waiting.acquire(run.owner_id);
    if (!release) return 'busy';
    const since = performance.now();
    let hasGivenUp = false;
    void closed.then(() => (hasGivenUp = performance.now() - since > GIVES_UP_AFTER_MS));
    const hasLeft = () => hasGivenUp;
    // the hooks of a change that is being applied run first
    await this.directory.learnt(run.source_id);
    return new Promise<EndpointResponse>((resolve, reject) => {
      this.lanes
        .executeHere(run, deployment.runs_at_a_time ?? 1, (onOutcome) => this.runs.execute(run, { onRespond: resolve, onOutcome, hasLeft }))
        .then(async (status) => resolve(status === null ? await this.notRun(run) : endOf(status)))
        .catch(reject)
        // a response occupies memory until its client has read it
        .finally(() => void closed.then(release));
    });
  }

  private async notRun({ owner_id }: DueRun): Promise<EndpointResponse> {
    return (await this.quotas.allow(owner_id)) ? 'not run' : 'over quota';
  }
}

const runFor = ({ owner_id, source_id }: DeploymentRow, event: RequestEvent): DueRun => ({
  run_id: randomUUID(),
  owner_id,
  source_id,
  trigger: 'http',
  ...event,
  due_at_ms: Date.now(),
});

const tooLate = (): Unavailable =>
  new Unavailable('the stores do not respond', `it could not be stored within ${STORED_WITHIN_MS / 1000} s`);

const endOf = (status: RunStatus): EndpointResponse => (KILLED.includes(status) ? 'stopped' : 'no response');
