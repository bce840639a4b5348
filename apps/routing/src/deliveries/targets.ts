import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { WebhookId } from '#contracts';
import { DeliveriesRepository } from './deliveries.repository.js';
import { type Target, targetOf } from './target.js';

/** How old what is known of a webhook may be when an attempt begins: a deleted or inactive one gets nothing more after that. */
const FRESH_MS = 1000;

interface Known {
  target: Target;
  /** When it was last known to be current, in ms. */
  seenAt: number;
}

/** The webhooks that deliveries go to, in memory. */
@Injectable()
export class Targets {
  private readonly known = new LRUCache<WebhookId, Known>({ max: 20_000 });
  private readonly wanted = new Map<WebhookId, PromiseWithResolvers<Target | undefined>>();

  constructor(private readonly deliveries: DeliveriesRepository) {}

  /** Somebody has seen that this is the newest version of the webhook. */
  see(id: WebhookId, version: number): void {
    const known = this.known.get(id);
    if (known?.target.version === version) known.seenAt = Date.now();
    else this.known.delete(id);
  }

  /** The webhook as it is, or was a moment ago; undefined when it's gone. */
  get(id: WebhookId): Target | undefined | Promise<Target | undefined> {
    const known = this.known.get(id);
    return known && Date.now() - known.seenAt < FRESH_MS ? known.target : this.load(id);
  }

  forget(id: WebhookId): void {
    this.known.delete(id);
  }

  /** What is wanted at the same time is read together. */
  private load(id: WebhookId): Promise<Target | undefined> {
    let wanted = this.wanted.get(id);
    if (!wanted) {
      if (this.wanted.size === 0) setImmediate(() => void this.loadWanted());
      this.wanted.set(id, (wanted = Promise.withResolvers()));
    }
    return wanted.promise;
  }

  private async loadWanted(): Promise<void> {
    const wanted = new Map(this.wanted);
    this.wanted.clear();
    const seenAt = Date.now();
    try {
      const targets = (await this.deliveries.findTargets([...wanted.keys()])).map(targetOf);
      for (const target of targets) this.known.set(target.id, { target, seenAt });
      const byId = new Map(targets.map((target) => [target.id, target]));
      for (const [id, { resolve }] of wanted) resolve(byId.get(id));
    } catch (error) {
      for (const { reject } of wanted.values()) reject(error);
    }
  }
}
