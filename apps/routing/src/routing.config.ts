import { Config, duration, integer, timeout } from '#config';
import { maxEventBytes } from '#events';
import { AddressGuard, allowPrivateHosts, protectedHosts } from '#egress';
import { retrySchedule } from '#retries';
import { SecretsConfig } from '#secrets';
import { WaitingDataConfig } from '#waiting-data';

/** The share of the attempts in flight that one account can have, however many webhooks it has. */
const ACCOUNT_SHARE = 0.75;

export const accountShareOf = (concurrency: number): number => Math.ceil(ACCOUNT_SHARE * concurrency);

/** The share of the attempts in flight that is kept for accounts that have none. */
const RESERVED_SHARE = 0.125;

/** The limits of lanes whose tenants are accounts. */
export function limitsOfLanes(concurrency: number): { concurrency: number; reserve: number; tenantConcurrency: number } {
  const reserve = Math.floor(RESERVED_SHARE * concurrency);
  return { concurrency: concurrency - reserve, reserve, tenantConcurrency: accountShareOf(concurrency) };
}

/** The routing's part of the configuration. Durations are milliseconds. */
export class RoutingConfig extends Config({
  retrySchedule,
  attemptTimeoutMs: timeout('SLUICE_ATTEMPT_TIMEOUT', {
    fallback: '15s',
    min: '1ms',
    description: 'Longest duration of one delivery attempt. A test of a webhook waits for at most 30 seconds.',
  }),
  connectTimeoutMs: timeout('SLUICE_CONNECT_TIMEOUT', {
    fallback: '5s',
    min: '1ms',
    description: 'Longest time to connect to a receiver.',
  }),
  concurrency: integer('SLUICE_DELIVERY_CONCURRENCY', {
    fallback: 512,
    min: 1,
    max: 10_000,
    description: 'Delivery attempts in flight in each replica, over all webhooks.',
  }),
  webhookConcurrency: integer('SLUICE_WEBHOOK_CONCURRENCY', {
    fallback: 4,
    min: 1,
    max: 100,
    description: 'Delivery attempts in flight to one webhook.',
  }),
  maxWebhooks: integer('SLUICE_MAX_WEBHOOKS', {
    fallback: 0,
    min: 0,
    description: 'Webhooks of an account; further ones are refused. 0: no limit. An installation that is open to strangers should set it.',
  }),
  maxAutoSubscriptions: integer('SLUICE_MAX_AUTO_SUBSCRIPTIONS', {
    fallback: 100,
    min: 0,
    description:
      'Auto-subscriptions of an account; further ones are refused. Each makes a subscription for every new emitter. 0: no limit.',
  }),
  disableAfterMs: duration('SLUICE_DISABLE_WEBHOOKS_AFTER', {
    fallback: '5d',
    min: '1ms',
    description:
      'A webhook that fails for this long is disabled: its owner gets an event on $errors and, if SLUICE_SMTP_URL is set, a mail.',
  }),
  failedKeptMs: duration('SLUICE_FAILED_DELIVERIES_KEPT', { fallback: '7d', description: 'How long failed deliveries are kept.' }),
  maxEventBytes,
  allowPrivateHosts,
  protectedHosts,
}) {
  private addressGuard: AddressGuard | undefined;

  /** Where deliveries may go. */
  get guard(): AddressGuard {
    return (this.addressGuard ??= AddressGuard.fromConfig(this.allowPrivateHosts));
  }
}

export const settings = [RoutingConfig, WaitingDataConfig, SecretsConfig];
