import type { SluiceClient, Subscription, Webhook } from '@sluice/client';
import { CliError, EXIT, usageError } from '../session/errors.js';
import type { Session } from '../session/session.js';
import { ambiguous, findEmitterOrAccount, findListener, type FindOptions, type Named } from './find.js';
import { emptyStreamNote, streamText } from './stream-hints.js';
import { WEBHOOKS } from './kinds.js';

interface SubscriptionOptions {
  stream?: string;
}

/** All sources, or all workflows. */
const GLOB = /^(dc|p)_\*$/;
const URL_TEXT = /^https?:/i;

/** `sluice subscribe EMITTER LISTENER|URL`: a URL without a webhook gets one. Subscribing again changes nothing. */
export async function subscribe(
  session: Session,
  emitter: string,
  listener: string,
  { stream, name }: SubscriptionOptions & { name?: string },
): Promise<void> {
  const { sluice } = session;
  const isUrl = URL_TEXT.test(listener);
  if (name !== undefined && !isUrl) throw usageError('--name is for the webhook of a URL');
  const exactly = !session.isInteractive;
  const { id: emitter_id, name: emitterName } = await emitterOf(sluice, emitter, { exactly });
  const found: Named & { created?: Webhook } = isUrl
    ? await webhookFor(session, listener, name)
    : await findListener(sluice, listener, { exactly });
  const { id: listener_id, created } = found;
  const { data } = await sluice.createSubscription({ query: { emitter_id, listener_id, event_name: stream } }).catch(async (error) => {
    if (created) await sluice.deleteWebhook({ path: { id: listener_id } });
    throw error;
  });
  if (created)
    session.note(
      `created webhook ${created.name} (${created.id}); sluice secret ${created.id} prints the secret that signs its deliveries`,
    );
  session.note(`${found.name} gets ${eventsOf(emitterName, stream)}`);
  const note = await emptyStreamNote(sluice, emitter_id, stream);
  if (note) session.note(note);
  if (session.format !== 'table') session.item(data[0]);
}

/** `sluice unsubscribe EMITTER LISTENER` */
export async function unsubscribe(session: Session, emitter: string, listener: string, { stream }: SubscriptionOptions): Promise<void> {
  const { sluice } = session;
  const { id: emitter_id } = await emitterOf(sluice, emitter, { exactly: true });
  const listener_id = await listenerOf(sluice, listener, { emitter_id, event_name: stream ?? '' });
  await sluice.deleteSubscription({ query: { emitter_id, listener_id, event_name: stream } });
  session.note(`${listener} no longer gets ${eventsOf(emitter, stream)}`);
  if (session.format !== 'table') session.item({ emitter_id, listener_id, event_name: stream ?? '', deleted: true });
}

const eventsOf = (emitter: string, stream: string | undefined): string =>
  `the events of ${emitter}${stream === undefined ? '' : ` on ${streamText(stream)}`}`;

const emitterOf = async (sluice: SluiceClient, text: string, options: FindOptions): Promise<Named> =>
  GLOB.test(text) ? { id: text, name: text } : findEmitterOrAccount(sluice, text, options);

/** The id of the listener of a subscription; a URL is that of a webhook, in whatever way it is written. */
async function listenerOf(
  sluice: SluiceClient,
  text: string,
  { emitter_id, event_name }: Pick<Subscription, 'emitter_id' | 'event_name'>,
): Promise<string> {
  if (!URL_TEXT.test(text)) return (await findListener(sluice, text, { exactly: true })).id;
  const webhooks = await webhooksAt(sluice, text);
  const [oldest, second] = webhooks;
  if (!oldest) throw new CliError(`no webhook has the URL ${text}; sluice list webhooks lists them`, EXIT.notFound);
  if (!second) return oldest.id;
  const { data } = await sluice.listSubscriptions();
  const listeners = data.filter((each) => each.emitter_id === emitter_id && each.event_name === event_name).map((each) => each.listener_id);
  const subscribed = webhooks.filter(({ id }) => listeners.includes(id));
  if (subscribed.length > 1)
    throw ambiguous(
      'webhook',
      text,
      subscribed.map(({ id, name }) => ({ id, name: name ?? 'webhook' })),
    );
  return (subscribed[0] ?? oldest).id;
}

/** The webhooks that have the URL and, if it is given, the name, oldest first. */
async function webhooksAt(sluice: SluiceClient, url: string, name?: string): Promise<Webhook[]> {
  if (!URL.canParse(url)) throw usageError(`${url} is not a URL`);
  const { href } = new URL(url);
  const isAt = (webhook: Webhook): boolean => URL.canParse(webhook.url) && new URL(webhook.url).href === href;
  const found: Webhook[] = [];
  for await (const webhook of WEBHOOKS.list(sluice))
    if (isAt(webhook) && (name === undefined || webhook.name === name)) found.unshift(webhook);
  return found;
}

/** The webhook at the URL, the oldest of several. It is created if there is none. */
async function webhookFor(session: Session, url: string, name: string | undefined): Promise<Named & { created?: Webhook }> {
  const { sluice } = session;
  const [found] = await webhooksAt(sluice, url, name);
  if (found && !found.active) session.warn(`webhook ${found.name ?? url} (${found.id}) is off: sluice on ${found.id}`);
  if (found) return { id: found.id, name: url };
  const { data } = await sluice.createWebhook({ query: { url, name: name ?? new URL(url).host } });
  return { id: data.id, name: url, created: data };
}
