import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { eventIdOf } from '#events';
import { counter, histogram, LOG, type Log } from '#observability';
import { Stats } from '#stats';
import { RoutingConfig } from '../../routing.config.js';
import type { Delivery, Outcome } from '../delivery.js';
import { deliveryHeaders, USER_AGENT } from './delivery-headers.js';
import { type PostResult, Poster } from './http-poster.js';
import { type FailedAttempt, nextAttempt, RANDOM, type Random, retryAfterMs as requestedPause } from './retry-schedule.js';
import { RunningClock } from './running-clock.js';
import type { Target } from '../receivers/targets.js';

const attempted = counter('deliveries_attempted_total', 'Attempts to deliver an event to a webhook.', ['outcome']);
const seconds = histogram('delivery_attempt_seconds', 'Duration of a delivery attempt until the response.');

const GONE = 410;
const BUSY = [429, 503];
const NOT_SIGNED: PostResult = { kind: 'failed', reason: 'the signing secret of the webhook cannot be decrypted', timeout: false };
const NO_PAUSE = { pauseMs: null, retryAfterMs: null };

/** An attempt as a step of the retry schedule. */
export type RetryStep = Pick<FailedAttempt, 'tries' | 'sinceFirstMs'>;

export const FIRST: RetryStep = { tries: 1, sinceFirstMs: 0 };

/** Makes attempts: signs, sends, judges the response and logs it. Stores nothing. */
@Injectable()
export class Attempts implements OnApplicationShutdown {
  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly config: RoutingConfig,
    private readonly poster: Poster,
    @Inject(RANDOM) private readonly random: Random,
    private readonly stats: Stats,
    private readonly clock: RunningClock,
  ) {}

  async onApplicationShutdown(): Promise<void> {
    await this.poster.close();
  }

  async make(target: Target, delivery: Delivery, step: RetryStep): Promise<Outcome> {
    const outcome = await this.makeUncounted(target, delivery, step);
    const { attempt, verdict } = outcome;
    this.stats.countEnded(delivery.webhookId, { durationMs: attempt.duration_ms, failed: verdict !== 'delivered' });
    return outcome;
  }

  /** The same without a trace in the webhook's statistics. */
  async makeUncounted(target: Target, delivery: Delivery, step: RetryStep): Promise<Outcome> {
    const ts = Date.now();
    const start = this.clock.now();
    const result: PostResult = target.problem ? NOT_SIGNED : await this.post(target, delivery, ts);
    const outcome = this.judge(result, ts, this.clock.now() - start, step);
    this.logAttempt(target, delivery, outcome, step);
    return outcome;
  }

  private post(target: Target, delivery: Delivery, ts: number): Promise<PostResult> {
    const keys = target.keys.filter(({ until }) => until > ts).map(({ key }) => key);
    const headers = deliveryHeaders(delivery, { nowMs: ts, keys, userAgent: USER_AGENT });
    if (target.authorization !== undefined) headers.authorization = target.authorization;
    return this.poster.post(target, headers, delivery.json);
  }

  private judge(result: PostResult, ts: number, durationMs: number, step: RetryStep): Outcome {
    const duration_ms = Math.round(durationMs);
    if (result.kind === 'failed') {
      const attempt = { ts, status_code: null, duration_ms, error: result.reason, response_body: null };
      return { attempt, verdict: 'failed', timeout: result.timeout, ...this.next({ ...step, retryAfterMs: null }) };
    }
    const { status, retryAfter, body } = result;
    const attempt = { ts, status_code: status, duration_ms, error: null, response_body: body };
    if (status >= 200 && status < 300) return { attempt, verdict: 'delivered', timeout: false, tries: step.tries, ...NO_PAUSE };
    if (status === GONE) return { attempt, verdict: 'gone', timeout: false, tries: step.tries, ...NO_PAUSE };
    return {
      attempt,
      verdict: 'failed',
      timeout: false,
      ...this.next({ ...step, retryAfterMs: requestedPause(retryAfter, Date.now()), busy: BUSY.includes(status) }),
    };
  }

  private next(failed: FailedAttempt): Pick<Outcome, 'tries' | 'pauseMs' | 'retryAfterMs'> {
    return { ...nextAttempt(this.config.retrySchedule, failed, this.random()), retryAfterMs: failed.retryAfterMs };
  }

  private logAttempt(target: Target, delivery: Delivery, { attempt, verdict, pauseMs }: Outcome, { tries }: RetryStep): void {
    attempted.inc({ outcome: verdict });
    seconds.observe(attempt.duration_ms / 1000);
    const level = verdict === 'delivered' ? 'debug' : 'info';
    // building the log line costs more than the signature
    if (!this.log.isLevelEnabled(level)) return;
    this.log[level](
      {
        webhook_id: delivery.webhookId,
        account_id: target.ownerId,
        emitter_id: delivery.emitterId,
        event_id: eventIdOf(delivery.place),
        attempt: tries,
        outcome: verdict,
        status: attempt.status_code,
        error: attempt.error ?? undefined,
        duration_ms: attempt.duration_ms,
        next_in_ms: pauseMs ?? undefined,
      },
      'delivery.attempted',
    );
  }
}
