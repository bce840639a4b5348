import { setTimeout as sleep } from 'node:timers/promises';
import type { DeliveryAttempt, Webhook, WebhookDelivery } from '@sluice/client';
import { findWebhook, isNoId } from '../resources/find.js';
import { CliError, EXIT, isNotFound, usageErrorOf } from '../session/errors.js';
import { timeOption } from '../session/option-values.js';
import { counted, time } from '../session/output.js';
import type { Session } from '../session/session.js';

/** An attempt takes at most SLUICE_ATTEMPT_TIMEOUT, by default 15 s, but others of the webhook may be made first. */
const WAIT_MS = 60_000;
const POLL_MS = 300;
const PAGE = 100;

/** `sluice retry WEBHOOK DELIVERY_ID`: makes the next attempt of a delivery now, and shows its outcome. Exits with 1 if it fails. */
export async function retry(session: Session, text: string, deliveryId: string, { wait }: { wait: boolean }): Promise<void> {
  const webhook = await findWebhook(session.sluice, text, { exactly: !session.isInteractive });
  const unknown = unknownDelivery(text, deliveryId);
  if (isNoId(deliveryId)) throw unknown;
  const { data: due } = await session.sluice.retryDelivery({ path: { id: webhook.id, deliveryId } }).catch((error: unknown) => {
    throw isNotFound(error) ? unknown : error;
  });
  // it is pending again, whatever it was before
  if (hasSucceeded(lastAttempt(due))) session.note(`${deliveryId} had already succeeded: its event is delivered again`);
  if (!wait) {
    session.note(`${deliveryId} is due now; ${webhook.active ? `sluice deliveries ${text} shows the outcome` : isOff(text)}`);
    if (session.format !== 'table') session.item(due);
    return;
  }
  if (!webhook.active) throw new CliError(`${deliveryId} is due now, but ${isOff(text)}`);
  const delivery = await attempted(session, webhook.id, due);
  if (!delivery) throw new CliError(`${deliveryId} was not attempted within ${WAIT_MS / 1000} s; sluice deliveries ${text} shows it`);
  if (session.format !== 'table') session.item(delivery);
  else session.print(`${outcomeOf(delivery)}\n`);
  if (delivery.status !== 'succeeded') throw new CliError(whyFailed(lastAttempt(delivery)));
}

/** `sluice test WEBHOOK`: sends one event that is not stored, and shows the response. Exits with 1 if it is not a success. */
export async function test(session: Session, text: string): Promise<void> {
  const { id } = await findWebhook(session.sluice, text, { exactly: !session.isInteractive });
  const { data: attempt } = await session.sluice.testWebhook({ path: { id } });
  const isSuccess = hasSucceeded(attempt);
  if (session.format !== 'table') session.item(attempt);
  else session.print(`${isSuccess ? 'succeeded' : 'failed'}: ${responseOf(attempt)}\n`);
  if (!isSuccess) throw new CliError(whyFailed(attempt));
}

export const unknownDelivery = (text: string, id: string): CliError =>
  new CliError(`${text} has no delivery ${id}; sluice deliveries ${text} lists them`, EXIT.notFound);

const hasSucceeded = (attempt: DeliveryAttempt | undefined): boolean =>
  typeof attempt?.status_code === 'number' && attempt.status_code >= 200 && attempt.status_code < 300;

export const isOff = (text: string): string => `${text} is off: sluice on ${text} lets its deliveries continue`;
const lastAttempt = ({ attempts }: WebhookDelivery): DeliveryAttempt | undefined => attempts.at(-1);

/** Whether the next attempt was due when the last one ended: that one was in progress when the next one was requested. */
function isDueAgain(delivery: WebhookDelivery): boolean {
  const last = lastAttempt(delivery);
  const { next_attempt_at } = delivery;
  return last !== undefined && next_attempt_at !== null && next_attempt_at <= (last.ts + last.duration_ms) / 1000;
}

/** The delivery after the attempt that was requested; undefined if there was none in time. */
async function attempted(session: Session, webhookId: string, due: WebhookDelivery): Promise<WebhookDelivery | undefined> {
  const find = finder(session, webhookId, due.id);
  const begin = Date.now();
  try {
    while (Date.now() < begin + WAIT_MS) {
      const delivery = await find();
      if (delivery && (delivery.status === 'failed' || (lastAttempt(delivery)?.ts !== lastAttempt(due)?.ts && !isDueAgain(delivery))))
        return delivery;
      session.progress(`waiting for the attempt, ${Math.round((Date.now() - begin) / 1000)} s`);
      await sleep(POLL_MS);
    }
    return undefined;
  } finally {
    session.progress();
  }
}

/** Reads a delivery from the list of its webhook, newest first. Newer deliveries move it to later pages, so it remembers the page. */
export function finder(session: Session, webhookId: string, deliveryId: string): () => Promise<WebhookDelivery | undefined> {
  let after: string | undefined;
  return async () => {
    for (;;) {
      const { page_info, data } = await session.sluice.listDeliveries({ path: { id: webhookId }, query: { limit: PAGE, after } });
      const found = data.find(({ id }) => id === deliveryId);
      const last = data.at(-1);
      if (found || data.length < PAGE || last === undefined || last.id < deliveryId) return found;
      after = page_info.end_cursor ?? undefined;
    }
  };
}

const responseOf = ({ status_code, error, duration_ms }: DeliveryAttempt): string =>
  `${status_code ?? error ?? 'no response'}, ${duration_ms} ms`;

/** One line: the status, the response, and what follows. */
function outcomeOf(delivery: WebhookDelivery): string {
  const attempt = lastAttempt(delivery);
  const what = attempt ? `: ${responseOf(attempt)}` : '';
  if (delivery.status === 'succeeded') return `succeeded${what}`;
  const next = delivery.next_attempt_at === null ? 'given up' : `next attempt ${time(delivery.next_attempt_at)}`;
  return `failed${what}; ${next}`;
}

function whyFailed(attempt: DeliveryAttempt | undefined): string {
  const { status_code = null, error = null, response_body = null } = attempt ?? {};
  if (status_code === null) return `the receiver did not respond: ${error ?? 'no attempt was made'}`;
  return `the receiver returned ${status_code}${response_body ? `: ${response_body.slice(0, 200)}` : ''}`;
}

/** The deliveries that wait for an attempt. The fields are also the output for programs. */
interface Waiting {
  pending: number;
  /** Whether there may be more. */
  pending_is_partial?: true;
  /** When the oldest of them was emitted, and when the first is attempted: Unix seconds. */
  pending_since: number | null;
  next_attempt_at: number | null;
}

/** The list has at most this many deliveries, so that a large backlog delays nothing. */
const MOST_LISTED = 5000;

async function waitingOf(session: Session, webhookId: string): Promise<Waiting & { oldest?: string }> {
  const pending: WebhookDelivery[] = [];
  let listed = 0;
  for await (const delivery of session.sluice.each((query) => session.sluice.listDeliveries({ path: { id: webhookId }, query }))) {
    if (delivery.status === 'pending') pending.push(delivery);
    if (++listed === MOST_LISTED) break;
  }
  const oldest = pending.at(-1);
  const next = pending.flatMap(({ next_attempt_at }) => next_attempt_at ?? []);
  return {
    pending: pending.length,
    ...(listed === MOST_LISTED && { pending_is_partial: true }),
    pending_since: oldest?.created_at ?? null,
    next_attempt_at: next.length === 0 ? null : next.reduce((a, b) => Math.min(a, b)),
    oldest: oldest?.id,
  };
}

/** `sluice recover WEBHOOK --since TIME`: makes the deliveries due that were given up, and shows what else waits. */
export async function recover(session: Session, text: string, options: { since: string }): Promise<void> {
  const since = timeOption('--since', options.since);
  const webhook = await findWebhook(session.sluice, text, { exactly: !session.isInteractive });
  // before: those that it makes due are pending, too
  const { oldest, ...waiting } = await waitingOf(session, webhook.id);
  const { data } = await session.sluice.recoverDeliveries({ path: { id: webhook.id }, query: { since } }).catch(usageErrorOf('since'));
  if (session.format !== 'table') return session.item({ ...data, ...waiting });
  session.print(`${recoveredText(data.count, since)}\n`);
  if (waiting.pending > 0) session.print(`${waitingText(waiting, data.count === 0 && webhook.active)}\n`);
  const next = whatFollows(webhook, text, data.count, { oldest, ...waiting });
  if (next !== undefined) session.note(next);
}

const recoveredText = (count: number, since: string): string =>
  count === 0 ? `no delivery was given up since ${since}` : `${counted(count, 'delivery', 'deliveries')} given up since ${since}: due now`;

/** @param isScheduled whether the next attempt is made at its time */
function waitingText({ pending, pending_is_partial, pending_since, next_attempt_at }: Waiting, isScheduled: boolean): string {
  const many = `${pending_is_partial ? 'at least ' : ''}${counted(pending, 'delivery', 'deliveries')}`;
  const next = next_attempt_at === null || !isScheduled ? '' : `, next attempt ${time(next_attempt_at)}`;
  return `${many} ${pending === 1 ? 'was' : 'were'} pending before, the oldest since ${time(pending_since)}${next}`;
}

function whatFollows(
  { active }: Webhook,
  text: string,
  count: number,
  { oldest, pending, pending_is_partial }: Waiting & { oldest?: string },
): string | undefined {
  if (count === 0 && oldest === undefined)
    return pending_is_partial ? `none of the last ${MOST_LISTED} deliveries waits` : `no delivery to ${text} is pending`;
  if (!active) return isOff(text);
  if (count > 0) return `Sluice attempts them now, in order; sluice deliveries ${text} shows them`;
  const retry = `sluice retry ${text} ${oldest}`;
  if (pending === 1) return `Sluice retries it on its schedule; ${retry} attempts it now`;
  return (
    `Sluice retries each on its schedule; ${retry} attempts the oldest one now. ` +
    'If at least five events in a row had failed and this attempt succeeds, Sluice delivers the others at once, too'
  );
}
