import type { WebhookId } from '#contracts';
import type { PostResult } from '../attempt/http-poster.js';
import type { Chance } from './chance-for-tests.js';

export type Behaviour = 'healthy' | 'failing' | 'hanging' | 'slow' | 'stumbling';

/** An attempt, as the endpoint's side of the wire sees it. */
export interface Arrival {
  webhookId: WebhookId;
  emitterId: string;
  /** The event's number among its emitter's. */
  n: number;
  messageId: string;
  atMs: number;
  emittedAtMs: number;
  replica: number;
  /** The response was a 2xx and was sent. */
  accepted: boolean;
}

/** How long an attempt may take, as in the dispatcher's configuration. */
export const TIMEOUT_MS = 15_000;
/** The emitter with some of whose events a stumbling endpoint takes long. */
export const STUMBLED_OVER = 'dc_1';
const SUCCESS: PostResult = { kind: 'response', status: 200, body: 'ok' };
const FAILURE: PostResult = { kind: 'response', status: 500, body: 'no' };
const TIMEOUT: PostResult = { kind: 'failed', timeout: true, reason: 'no response' };

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The receivers of a simulation: each behaves in its way until it behaves in another. */
export class Endpoints {
  readonly arrivals: Arrival[] = [];
  readonly behaviours = new Map<WebhookId, Behaviour>();
  /** Periods in which an endpoint has done nothing but fail. */
  readonly outages: { webhookId: WebhookId; from: number; to: number }[] = [];
  private readonly since = new Map<WebhookId, number>();
  /** Events that a healthy endpoint chokes on, and how often it still will. */
  private readonly poison = new Map<string, number>();

  constructor(
    private readonly chance: Chance,
    private readonly poisonShare: number,
  ) {}

  behave(webhookId: WebhookId, behaviour: Behaviour): void {
    const before = this.behaviours.get(webhookId);
    if (before === 'failing' || before === 'hanging')
      this.outages.push({ webhookId, from: this.since.get(webhookId) ?? 0, to: Date.now() });
    this.behaviours.set(webhookId, behaviour);
    this.since.set(webhookId, Date.now());
  }

  async receive(arrival: Arrival): Promise<PostResult> {
    this.arrivals.push(arrival);
    const behaviour = this.behaviours.get(arrival.webhookId) ?? 'healthy';
    if (behaviour === 'hanging') {
      await sleep(TIMEOUT_MS);
      return TIMEOUT;
    }
    await sleep(this.duration(behaviour, arrival));
    if (behaviour === 'failing' || this.chokes(arrival)) return FAILURE;
    arrival.accepted = true;
    return SUCCESS;
  }

  private duration(behaviour: Behaviour, { emitterId }: Arrival): number {
    if (behaviour === 'slow') return this.chance.between(300, 2500);
    if (behaviour === 'stumbling' && emitterId === STUMBLED_OVER && this.chance.happens(0.2)) return this.chance.between(2000, 12_000);
    return this.chance.between(1, 20);
  }

  private chokes({ webhookId, emitterId, n }: Arrival): boolean {
    const key = `${webhookId} ${emitterId} ${n}`;
    let left = this.poison.get(key);
    if (left === undefined) this.poison.set(key, (left = this.chance.happens(this.poisonShare) ? this.chance.integer(1, 3) : 0));
    if (left === 0) return false;
    this.poison.set(key, left - 1);
    return true;
  }
}
