import { setTimeout as sleep } from 'node:timers/promises';
import type { EventListener, Replay, Webhook, WebhookDelivery } from '@sluice/client';
import { findEmitter, findListener, findWebhook } from '../resources/find.js';
import { namesOfEnds } from '../resources/kinds.js';
import { CliError, EXIT, usageError, usageErrorOf } from '../session/errors.js';
import { countOption, timeOption } from '../session/option-values.js';
import { counted, itemText, time } from '../session/output.js';
import type { Session } from '../session/session.js';
import { finder, isOff, unknownDelivery } from './retry.js';
import { otherStreams, streamText } from '../resources/stream-hints.js';

const lastStatus = ({ attempts }: { attempts: WebhookDelivery['attempts'] }): string => {
  const last = attempts.at(-1);
  return last ? String(last.status_code ?? last.error ?? '') : '';
};

/** `sluice deliveries WEBHOOK [DELIVERY_ID]`, or `sluice deliveries EMITTER EVENT_ID`: the listeners of one event. */
export async function deliveries(
  session: Session,
  text: string,
  deliveryOrEvent: string | undefined,
  { number = '20' }: { number?: string },
): Promise<void> {
  // an emit id may have the form of a delivery id
  const mayBeDelivery = deliveryOrEvent?.startsWith('del_') ?? true;
  const webhook = mayBeDelivery ? await webhookUnlessEmitter(session, text) : undefined;
  if (deliveryOrEvent !== undefined)
    return webhook ? showDelivery(session, webhook, text, deliveryOrEvent) : listListeners(session, text, deliveryOrEvent);
  if (!webhook)
    throw usageError(
      `${text} is a source or workflow: give the id of an event, too: sluice deliveries ${text} EVENT_ID (sluice events ${text} lists them)`,
    );
  const { id, active } = webhook;
  const limit = countOption(number, 1, 100);
  const { data } = await session.sluice.listDeliveries({ path: { id }, query: { limit } });
  session.list(data, [
    ['ID', ({ id: delivery }) => delivery],
    ['CREATED', ({ created_at }) => time(created_at)],
    ['STATUS', ({ status }) => status],
    ['ATTEMPTS', ({ attempts }) => attempts.length],
    ['LAST', lastStatus],
    ['NEXT', ({ next_attempt_at }) => time(next_attempt_at)],
    ['EVENT', ({ event_id }) => event_id],
  ]);
  if (!active) session.note(isOff(text));
}

/** The listeners of one event, with what became of it. */
async function listListeners(session: Session, text: string, event: string): Promise<void> {
  const id = await findEmitter(session.sluice, text);
  const request = { path: { id, eventId: await eventIdOf(session, id, event) } };
  const { data } = await (id.startsWith('p_')
    ? session.sluice.listWorkflowEventDeliveries(request)
    : session.sluice.listSourceEventDeliveries(request));
  if (data.length === 0) session.note('no listener was subscribed');
  const nameOf = session.format === 'table' ? await namesOfEnds(session.sluice) : String;
  session.list<EventListener>(data, [
    ['LISTENER', ({ listener_id }) => nameOf(listener_id)],
    ['STATUS', ({ status }) => status],
    ['ID', ({ delivery_id, run_id }) => delivery_id ?? run_id],
    ['ATTEMPTS', ({ attempts }) => (attempts.length > 0 ? attempts.length : '')],
    ['LAST', lastStatus],
  ]);
}

/** Everything about one delivery, also the response to each attempt. */
async function showDelivery(session: Session, { id }: Webhook, text: string, deliveryId: string): Promise<void> {
  const delivery = await finder(session, id, deliveryId)();
  if (!delivery) throw unknownDelivery(text, deliveryId);
  session.item(delivery);
}

/** An event id, or the id of the event with this emit id, which `sluice publish` prints. */
async function eventIdOf(session: Session, emitter: string, text: string): Promise<string> {
  if (/^\d+-\d+$/.test(text)) return text;
  // without the events themselves, which may be 100 MiB
  const request = { path: { id: emitter }, query: { event_name: '*', limit: 100, include: 'id,metadata' } };
  const { data } = await (emitter.startsWith('p_') ? session.sluice.listWorkflowEvents(request) : session.sluice.listSourceEvents(request));
  const found = data.find(({ metadata }) => metadata.emit_id === text);
  if (!found) throw new CliError(`none of the last 100 events has the id or emit id ${text}`, EXIT.notFound);
  return found.id;
}

/** Undefined if the text is the name of an emitter. Throws if it is the name of neither. */
async function webhookUnlessEmitter(session: Session, text: string): Promise<Webhook | undefined> {
  try {
    return await findWebhook(session.sluice, text);
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== EXIT.notFound) throw error;
    await findEmitter(session.sluice, text).catch(() => {
      throw error;
    });
    return undefined;
  }
}

export interface ReplayOptions {
  from: string;
  to?: string;
  stream?: string;
  dryRun?: boolean;
  wait: boolean;
}

const POLL_MS = 500;
/** After this time without progress, the user should know the reason. */
const PATIENCE_MS = 10_000;
/** Later than any event. */
const NOW = '9999999999999-0';

/** Shows the progress of a replay until it ends. `hint`: why it may have to wait. */
async function showProgress(session: Session, replay: Replay, hint: string): Promise<Replay> {
  let [current, before, movedAt] = [replay, 0, performance.now()];
  while (current.status === 'running') {
    await sleep(POLL_MS);
    current = (await session.sluice.getReplay({ path: { id: replay.id } })).data;
    const done = current.delivered + current.failed;
    if (done > before) [before, movedAt] = [done, performance.now()];
    if (hint && performance.now() - movedAt > PATIENCE_MS) {
      session.warn(`no progress for ${PATIENCE_MS / 1000} s: ${hint}`);
      movedAt = Infinity;
    }
    session.progress(`${done} of ${counted(current.events, 'event')}`);
  }
  return current;
}

/** `sluice replay EMITTER LISTENER --from TIME|EVENT_ID`: delivers past events once more, and shows the progress. */
export async function replay(session: Session, emitter: string, listener: string, options: ReplayOptions): Promise<void> {
  const [from, to] = [timeOption('--from', options.from), timeOption('--to', options.to ?? NOW)];
  const exactly = !session.isInteractive;
  const emitter_id = await findEmitter(session.sluice, emitter, { exactly });
  const { id: listener_id } = await findListener(session.sluice, listener, { exactly });
  const body = { emitter_id, listener_id, event_name: options.stream, from, to, dry_run: options.dryRun };
  const { data } = await session.sluice.createReplay({ body }).catch(usageErrorOf('from')).catch(usageErrorOf('to'));
  if (data.events === 0)
    session.note(
      `no events on ${streamText(options.stream)} in this range${await otherStreams(session.sluice, emitter_id, options.stream)}`,
    );
  if (!('id' in data))
    return session.print(session.format === 'table' ? `${counted(data.events, 'event')}\n` : itemText(data, session.format));
  session.note(`replay ${data.id}: ${counted(data.events, 'event')}`);
  const howToEnd = `sluice api getReplay id=${data.id} shows its progress, sluice api cancelReplay id=${data.id} ends it`;
  if (options.wait) process.prependOnceListener('SIGINT', () => session.note(`\nthe replay continues: ${howToEnd}`));
  const begun: Replay = { id: data.id, status: 'running', events: data.events, delivered: 0, failed: 0 };
  const hint = listener_id.startsWith('wh_')
    ? `deliveries that wait for ${listener} go first; sluice deliveries ${listener} lists them`
    : listener_id.startsWith('dc_')
      ? `runs that wait for ${listener} go first`
      : '';
  const progress = options.wait ? await showProgress(session, begun, hint) : begun;
  session.progress();
  if (!options.wait) session.note(howToEnd);
  if (session.format !== 'table') session.item(progress);
  else
    session.print(`${progress.id} ${progress.status}: ${progress.delivered} of ${progress.events} delivered, ${progress.failed} failed\n`);
  if (progress.status === 'cancelled')
    throw new CliError('the replay was cancelled, by a request or because its listener was switched off');
  if (progress.failed > 0)
    throw new CliError(
      `${counted(progress.failed, 'event')} not delivered: the first attempt failed and is retried on the usual schedule, the run failed, or the event was deleted`,
    );
}
