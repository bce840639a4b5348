import { createHash, createHmac, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventSummary } from '@sluice/client';
import { findEmitter, findWebhook } from '../resources/find.js';
import { shortensAddress } from '../session/addresses.js';
import { CliError, EXIT, isNotFound, usageError } from '../session/errors.js';
import { parseExactly } from '../session/exact-json.js';
import { secretFrom } from '../session/files.js';
import { cell, type Format, listText, printable, styled } from '../session/output.js';
import type { Session } from '../session/session.js';
import { eventText } from './event-line.js';
import { post } from './post.js';
import { connectionNotes } from './read-events.js';
import { emptyStreamNote } from '../resources/stream-hints.js';

export interface ListenOptions {
  source?: string[];
  stream?: string;
  after?: string;
  webhook?: string;
  secretFile?: string;
}

const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 5_000;
/** As long as Sluice waits for a receiver. */
const RESPONSE_MS = 15_000;
const SECRET = /^whsec_[A-Za-z0-9+/]{2,}={0,2}$/;

/** The address of `PORT`, with or without a path, or `URL`. */
export function targetUrl(target: string): string {
  const hasScheme = /^https?:\/\//i.test(target);
  const text = hasScheme ? target : /^\d+([/?#]|$)/.test(target) ? `http://localhost:${target}` : `http://${target}`;
  const url = URL.parse(text);
  if (!url) throw usageError(`not a port or URL: ${target}`);
  if (shortensAddress(text, url))
    throw usageError(`${target} means the address ${url.hostname}: write it so, or localhost:PORT for a server on this machine`);
  return url.href;
}

/**
 * `sluice listen [PORT|URL] --source SOURCE`: posts events to a server as a webhook would, as they are emitted; without a server, prints them. The next
 * event of a source follows when the server has responded, so the order is kept; while the server cannot be reached, events wait.
 */
export async function listen(session: Session, target: string | undefined, options: ListenOptions): Promise<void> {
  if (!options.source)
    throw usageError('--source is required: whose events to show or post, for example --source orders; sluice list shows your sources');
  if (options.after !== undefined && !/^\d+-\d+$/.test(options.after))
    throw usageError(`--after must be the id of an event, such as 1763715600000-0, not ${options.after}; sluice events shows the ids`);
  if (target === undefined && (options.webhook !== undefined || options.secretFile !== undefined))
    throw usageError('--webhook and --secret-file need a port or URL to post events to');
  const url = target === undefined ? undefined : targetUrl(target);
  const found = await Promise.all(options.source.map(async (name) => ({ name, id: await findEmitter(session.sluice, name) })));
  const emitters = found.filter(({ id }, n) => found.findIndex((each) => each.id === id) === n);
  session.endWithReader();
  const handle = url === undefined ? printing(session, emitters) : await posting(session, url, options);
  await Promise.all(
    emitters.map(async ({ name, id }) => {
      const what = emitters.length > 1 ? ` (${name})` : '';
      const note = await emptyStreamNote(session.sluice, id, options.stream);
      if (note) session.note(note + what);
      const events = session.sluice.events(id, {
        eventName: options.stream,
        after: options.after,
        parse: parseExactly,
        onState: readyNotes(session, what),
        onGap: () => session.warn(`more than 100 events were emitted while not connected${what}: some may be missing`),
      });
      try {
        for await (const event of events) await handle(event);
      } catch (error) {
        if (!isNotFound(error)) throw error;
        session.warn(`${name} was deleted`);
      }
    }),
  );
  throw new CliError('nothing is left to listen to', EXIT.notFound);
}

type Handle = (event: EventSummary) => Promise<void>;

/** Prints each event, as `events -f` does, after the name of its source if there are several. */
function printing(session: Session, emitters: { name: string; id: string }[]): Handle {
  const names = new Map(emitters.map(({ name, id }) => [id, name]));
  const hasNames = session.format === 'table' && names.size > 1;
  return async (event) => {
    const name = hasNames ? `${styled('cyan', cell(names.get(event.metadata.emitter_id)), process.stdout)}  ` : '';
    await session.printNext(name + eventText(event, session.format));
  };
}

async function posting(session: Session, url: string, options: ListenOptions): Promise<Handle> {
  const secret = await signingSecret(session, options);
  session.note(`posting events to ${url}, signed with ${secret.shown}`);
  return (event) => postEvent(session, url, event, secret.value);
}

function readyNotes(session: Session, what: string): ReturnType<typeof connectionNotes> {
  const notes = connectionNotes(session, what);
  let isReady = false;
  return (state) => {
    notes(state);
    if (state.connected && !isReady) session.note(`ready${what}`);
    isReady ||= state.connected;
  };
}

/** The secret of a webhook, of a file, or a new one, which is shown. */
async function signingSecret(session: Session, { webhook, secretFile }: ListenOptions): Promise<{ value: string; shown: string }> {
  if (webhook !== undefined) {
    const { id, name } = await findWebhook(session.sluice, webhook);
    const { data } = await session.sluice.getWebhookSecret({ path: { id } });
    return { value: data.secret, shown: `the secret of ${name ?? id}` };
  }
  const given = secretFrom(secretFile, session.env.SLUICE_WEBHOOK_SECRET);
  if (given !== undefined) {
    const shown = secretFile === undefined ? 'SLUICE_WEBHOOK_SECRET' : `the secret in ${secretFile}`;
    // another text would sign with a key that no receiver has
    if (!SECRET.test(given)) throw usageError(`${shown} must be whsec_ followed by base64`);
    return { value: given, shown };
  }
  const value = `whsec_${randomBytes(24).toString('base64')}`;
  return { value, shown: value };
}

/** Posts one event, as often as it takes until the server responds. */
async function postEvent(session: Session, url: string, event: EventSummary, secret: string): Promise<void> {
  const body = JSON.stringify(event.event);
  for (let failures = 0; ; failures++) {
    try {
      const headers = webhookHeaders(event, body, secret);
      // like Sluice, it does not wait for the end of the response
      const status = await post(url, { headers, body }, RESPONSE_MS, (response) => response.resume().statusCode!);
      return await session.printNext(postedText(event, { status, body }, session.format));
    } catch (error) {
      if (failures === 0) session.warn(`${url} cannot be reached: ${cell((error as Error).message)}; retrying`);
      await sleep(Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** failures));
    }
  }
}

function postedText(event: EventSummary, { status, body }: { status: number; body: string }, format: Format): string {
  if (format !== 'table') return printable(listText([{ status, ...event }], [], format));
  const shown = styled(status >= 200 && status < 300 ? 'green' : 'red', String(status), process.stdout);
  return `${shown}  ${cell(event.id)}  ${cell(event.metadata.name || 'default')}  ${cell(body).slice(0, 200)}\n`;
}

/**
 * Headers as Sluice delivers an event to a webhook: Standard Webhooks and CloudEvents. The summary of an event contains neither the attributes that its
 * producer gave, such as an id, nor the webhook that a `webhook-id` depends on: the id here has the same form, and is the same each time.
 */
export function webhookHeaders(
  { id, indexed_at_ms, metadata: { emitter_id, emit_id, name } }: EventSummary,
  body: string,
  secret: string,
  now = Date.now(),
): Record<string, string> {
  const messageId = `msg_${createHash('sha256').update([emitter_id, name, emit_id].join('\n')).digest('hex').slice(0, 32)}`;
  const timestamp = String(Math.floor(now / 1000));
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const stream = percentEncoded(name || 'default');
  return {
    'content-type': 'application/json',
    'webhook-id': messageId,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${createHmac('sha256', key).update(`${messageId}.${timestamp}.${body}`).digest('base64')}`,
    'ce-specversion': '1.0',
    'ce-id': id,
    'ce-source': emitter_id,
    'ce-type': stream,
    'ce-time': new Date(indexed_at_ms).toISOString(),
    'ce-sluiceemitter': emitter_id,
    'ce-sluiceevent': id,
    'ce-sluicestream': stream,
  };
}

/** Text as a header value: all but printable ASCII, and `"` and `%`, is percent-encoded UTF-8 (CloudEvents HTTP binding, 3.1.3.2). */
const percentEncoded = (text: string): string =>
  text.replace(/[^!#$&-~]/gu, (character) => Buffer.from(character).toString('hex').toUpperCase().replace(/../g, '%$&'));
