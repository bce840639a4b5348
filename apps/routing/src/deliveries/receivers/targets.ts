import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { UserId, WebhookId } from '#contracts';
import { LOG, type Log } from '#observability';
import { SecretBox, SecretsKeyProblem } from '#secrets';
import { keyOfSecret, openedSecret, type SigningKey } from '../../webhooks/signing-secret.js';
import type { Mode, TargetRow } from '../../webhooks/webhooks.repository.js';
import { DeliveryStore } from '../store/delivery-store.js';

/** A webhook as deliveries see it. */
export interface Target {
  id: WebhookId;
  ownerId: UserId;
  /** The version of the webhook; if a newer one is known, the webhook is read again. */
  version: number;
  active: boolean;
  /** It was disabled, and the deliveries that waited are being given up. */
  givingUp: boolean;
  mode: Mode;
  /** Deliveries per second. */
  rateLimit: number | null;
  url: string;
  origin: string;
  path: string;
  /** From a user name and password in the URL. */
  authorization?: string;
  /** To sign with, the newest first; `until` in ms. */
  keys: { key: SigningKey; until: number }[];
  /** Why nothing can be signed; then every attempt fails, as at a failing receiver. */
  problem?: SecretsKeyProblem;
}

export function targetOf(row: TargetRow, box: SecretBox): Target {
  const url = new URL(row.url);
  return {
    id: row.id,
    ownerId: row.owner_id,
    version: row.version,
    active: row.active,
    givingUp: row.giving_up,
    mode: row.mode,
    rateLimit: row.rate_limit,
    url: row.url,
    origin: url.origin,
    path: url.pathname + url.search,
    authorization: basicAuthorization(url),
    ...keysOf(row, box),
  };
}

function keysOf(row: TargetRow, box: SecretBox): Pick<Target, 'keys' | 'problem'> {
  const keyOf = (stored: string) => keyOfSecret(openedSecret(box, row.id, stored));
  try {
    const previous = (row.previous_secrets ?? []).map(({ secret, until_ms }) => ({ key: keyOf(secret), until: until_ms }));
    return { keys: [{ key: keyOf(row.secret), until: Infinity }, ...previous] };
  } catch (error) {
    if (error instanceof SecretsKeyProblem) return { keys: [], problem: error };
    throw error;
  }
}

function basicAuthorization({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined;
  return `Basic ${Buffer.from(`${decoded(username)}:${decoded(password)}`).toString('base64')}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // a % without hexadecimal digits behind it escapes nothing
    return text;
  }
}

/**
 * How old the cached state of a webhook may be when an attempt begins. A change that this process has made is seen at once; for this long after one that
 * another replica has made, deliveries that wait here may still use the old state.
 */
const FRESH_MS = 1000;
const OUTDATED = -Infinity;

interface Known {
  target: Target;
  /** When it was last known to be current, in ms since the process started; OUTDATED: it is not. */
  seenAt: number;
}

/**
 * A cache of the webhooks that receive deliveries. One statement at a time reads them, so the state of a webhook never goes back to an older one: a
 * delivery that was parked because its webhook is spilled must not be overtaken by one that still sees the mode `direct`. A row of the database is valid
 * even if its version is lower: then the database was restored.
 */
@Injectable()
export class Targets {
  private readonly known = new LRUCache<WebhookId, Known>({ max: 50_000 });
  /** The webhooks that have changed since the statement in progress began. */
  private readonly outdated = new Set<WebhookId>();
  private readonly wanted = new Map<WebhookId, PromiseWithResolvers<Target | undefined>>();
  private loading: Promise<void> = Promise.resolve();

  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly store: DeliveryStore,
    private readonly box: SecretBox,
  ) {}

  /** This version of the webhook was just read. */
  see(id: WebhookId, version: number): void {
    const known = this.known.get(id);
    // a change that this process has made may be newer
    if (!known || known.seenAt === OUTDATED || version < known.target.version) return;
    known.seenAt = version === known.target.version ? performance.now() : OUTDATED;
  }

  /** The webhook as it is, or was a moment ago; undefined if it is deleted. */
  get(id: WebhookId): Target | undefined | Promise<Target | undefined> {
    const target = this.recent(id);
    // closing ends at a time, without a new version
    return target && target.mode !== 'closing' ? target : this.load(id);
  }

  /** The same for the owner of the backlog, who decides about the mode: that may be outdated. */
  ofBacklog(id: WebhookId): Target | undefined | Promise<Target | undefined> {
    return this.recent(id) ?? this.load(id);
  }

  private recent(id: WebhookId): Target | undefined {
    const known = this.known.get(id);
    return known && performance.now() - known.seenAt < FRESH_MS ? known.target : undefined;
  }

  /** The webhook has changed. */
  outdate(id: WebhookId): void {
    this.outdated.add(id);
    const known = this.known.get(id);
    if (known) known.seenAt = OUTDATED;
  }

  /** Whether the webhook has another URL by now: what the receiver of this one has returned does not concern it. */
  async hasMoved({ id, url }: Target): Promise<boolean> {
    const target = await this.load(id);
    return target !== undefined && target.url !== url;
  }

  /** The webhook as it is now. Simultaneous calls share one query. */
  load(id: WebhookId): Promise<Target | undefined> {
    let wanted = this.wanted.get(id);
    if (!wanted) {
      if (this.wanted.size === 0) setImmediate(() => void (this.loading = this.loading.then(() => this.loadWanted())));
      this.wanted.set(id, (wanted = Promise.withResolvers()));
    }
    return wanted.promise;
  }

  private async loadWanted(): Promise<void> {
    const wanted = new Map(this.wanted);
    this.wanted.clear();
    this.outdated.clear();
    const seenAt = performance.now();
    try {
      const rows = new Map((await this.store.findTargets([...wanted.keys()])).map((row) => [row.id, row]));
      for (const [id, { resolve }] of wanted) resolve(this.keep(id, rows.get(id), seenAt));
    } catch (error) {
      for (const { reject } of wanted.values()) reject(error);
    }
  }

  private keep(id: WebhookId, row: TargetRow | undefined, seenAt: number): Target | undefined {
    if (!row) {
      this.known.delete(id);
      return undefined;
    }
    const target = targetOf(row, this.box);
    const { problem } = target;
    // once while it is known: it is read again and again
    if (problem && !this.known.get(id)?.target.problem) this.log.error({ webhook_id: id, err: problem }, 'webhook.secret-not-decrypted');
    this.known.set(id, { target, seenAt: this.outdated.has(id) ? OUTDATED : seenAt });
    return target;
  }
}
