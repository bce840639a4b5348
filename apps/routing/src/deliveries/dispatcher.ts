import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { eventIdOf } from '#contracts';
import type { Lanes, Task } from '#messaging';
import { counter, histogram, LOG, type Log } from '#observability';
import { RoutingConfig } from '../routing.config.js';
import { USER_AGENT } from './user-agent.js';
import { DeliveriesRepository, type ParkedDelivery } from './deliveries.repository.js';
import type { Attempt, Delivery } from './delivery.js';
import { deliveryHeaders } from './delivery-headers.js';
import { type Answer, Poster } from './poster.js';
import { nextPause } from './retry-schedule.js';
import type { Target } from './target.js';
import { Targets } from './targets.js';

const attempted = counter('deliveries_attempted_total', 'Attempts to deliver an event to a webhook.', ['outcome']);
const seconds = histogram('delivery_attempt_seconds', 'From the begin of an attempt to the answer.');

const GONE = 410;

/** Delivers events to webhooks: the first attempt from memory, what fails is parked. */
@Injectable()
export class Dispatcher implements OnApplicationShutdown {
  private readonly poster: Poster;
  private lanes: Lanes | undefined;

  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly config: RoutingConfig,
    private readonly deliveries: DeliveriesRepository,
    private readonly targets: Targets,
  ) {
    this.poster = new Poster({ guard: config.guard, timeoutMs: config.attemptTimeoutMs, connectTimeoutMs: config.connectTimeoutMs });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.poster.close();
  }

  /** Retries run in the same lanes as first attempts, so that together they keep a webhook's bound. */
  useLanes(lanes: Lanes): void {
    this.lanes = lanes;
  }

  /** The first attempt, in order per webhook and emitter. `version` is the webhook's newest. */
  firstAttempt(delivery: Delivery, version: number): Task {
    this.targets.see(delivery.webhookId, version);
    return this.task(`${delivery.webhookId} ${delivery.emitterId}`, { delivery, attempts: [] });
  }

  /** A later attempt, in a lane of its own: it doesn't hold up anything. Resolves when it's over. */
  retry(parked: ParkedDelivery): Promise<void> {
    const { webhookId, place } = parked.delivery;
    return new Promise((resolve) => this.lanes?.push(this.task(`${webhookId} retry ${eventIdOf(place)}`, parked), resolve));
  }

  private task(lane: string, parked: ParkedDelivery): Task {
    const { delivery, attempts } = parked;
    let settle: (() => Promise<void>) | undefined;
    return {
      lane,
      group: delivery.webhookId,
      run: async () => {
        // when the database is away the task runs again: then only what is left to write is done, and nothing is sent twice
        if (!settle) {
          const target = await this.targets.get(delivery.webhookId);
          if (!target?.active) return;
          const { attempt, answer } = await this.attempt(target, delivery, attempts.length + 1);
          settle = this.settlement(delivery, [...attempts, attempt], answer);
        }
        await settle();
      },
    };
  }

  private async attempt(target: Target, delivery: Delivery, n: number): Promise<{ attempt: Attempt; answer: Answer }> {
    const ts = Date.now();
    const start = performance.now();
    const keys = target.keys.filter(({ until }) => until > ts).map(({ key }) => key);
    const headers = deliveryHeaders(delivery, { nowMs: ts, keys, userAgent: USER_AGENT });
    if (target.authorization !== undefined) headers.authorization = target.authorization;
    const answer = await this.poster.post(target, headers, delivery.json);
    const duration = performance.now() - start;
    const attempt: Attempt = {
      ts,
      status_code: answer.kind === 'answered' ? answer.status : null,
      duration_ms: Math.round(duration),
      error: answer.kind === 'failed' ? answer.reason : null,
      response_body: answer.kind === 'answered' ? answer.body : null,
    };
    const outcome = isSuccess(answer) ? 'succeeded' : 'failed';
    attempted.inc({ outcome });
    seconds.observe(duration / 1000);
    this.log[isSuccess(answer) ? 'debug' : 'info'](
      {
        webhook_id: delivery.webhookId,
        owner_id: target.ownerId,
        emitter_id: delivery.emitterId,
        event_id: eventIdOf(delivery.place),
        attempt: n,
        outcome,
        status: attempt.status_code,
        error: attempt.error ?? undefined,
        duration_ms: attempt.duration_ms,
      },
      'delivery.attempted',
    );
    return { attempt, answer };
  }

  private settlement(delivery: Delivery, attempts: Attempt[], answer: Answer): () => Promise<void> {
    const first = attempts.length === 1;
    if (isSuccess(answer)) return first ? async () => {} : () => this.deliveries.unpark(delivery);
    const status = answer.kind === 'answered' ? answer.status : null;
    if (status === GONE) {
      return async () => {
        await this.deliveries.disable(delivery.webhookId);
        this.targets.forget(delivery.webhookId);
        await this.deliveries.park({ delivery, attempts }, null);
      };
    }
    const retryAfter = answer.kind === 'answered' ? answer.retryAfter : undefined;
    const pause = nextPause(this.config.retrySchedule, { attempts: attempts.length, status, retryAfter }, Date.now(), Math.random());
    return () => this.deliveries.park({ delivery, attempts }, pause);
  }
}

const isSuccess = (answer: Answer): boolean => answer.kind === 'answered' && answer.status >= 200 && answer.status < 300;
