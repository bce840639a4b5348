import { createHmac, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventSummary } from '@sluice/client';
import { findEmitter, findWebhook } from '../resources/find.js';
import { usageError } from '../session/errors.js';
import { cell, styled } from '../session/output.js';
import type { Session } from '../session/session.js';
import { connectionNotes } from './read-events.js';

export interface ListenOptions {
  source?: string[];
  stream?: string;
  after?: string;
  webhook?: string;
  secretFile?: string;
}

const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 5_000;

/** The address of `PORT` or `URL`. */
export function targetUrl(target: string): string {
  const text = /^\d+$/.test(target) ? `http://localhost:${target}/` : /^https?:\/\//i.test(target) ? target : `http://${target}`;
  const url = URL.parse(text);
  if (!url || (/^\d+$/.test(target) && Number(target) > 65_535)) throw usageError(`not a port or URL: ${target}`);
  return url.href;
}

/**
 * `sluice listen PORT|URL --source SOURCE`: posts events to a server as a webhook would, as they are emitted. The next event of a source follows when
 * the server has responded, so the order is kept; while the server cannot be reached, events wait.
 */
export async function listen(session: Session, target: string, options: ListenOptions): Promise<void> {
  const url = targetUrl(target);
  if (!options.source) throw usageError('--source is required: the sources or workflows whose events to post');
  if (options.after !== undefined && !/^\d+-\d+$/.test(options.after))
    throw usageError(`--after must be the id of an event, such as 1763715600000-0, not ${options.after}; sluice events shows the ids`);
  const emitters = await Promise.all(options.source.map((text) => findEmitter(session.sluice, text)));
  const secret = await signingSecret(session, options);
  session.note(`posting events to ${url}, signed with ${secret.shown}`);
  await Promise.all(
    emitters.map(async (emitter) => {
      const what = emitters.length > 1 ? ` (${emitter})` : '';
      const events = session.sluice.events(emitter, {
        eventName: options.stream,
        after: options.after,
        onState: readyNotes(session, what),
        onGap: () => session.warn(`more than 100 events were emitted while not connected${what}: some may be missing`),
      });
      for await (const event of events) await post(session, url, event, secret.value);
    }),
  );
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
    const { id } = await findWebhook(session.sluice, webhook);
    const { data } = await session.sluice.getWebhookSecret({ path: { id } });
    return { value: data.secret, shown: `the secret of ${id}` };
  }
  const given = secretFile === undefined ? session.env.SLUICE_WEBHOOK_SECRET : readFileSync(secretFile, 'utf8').trim();
  if (given !== undefined)
    return { value: given, shown: secretFile === undefined ? 'SLUICE_WEBHOOK_SECRET' : `the secret in ${secretFile}` };
  const value = `whsec_${randomBytes(24).toString('base64')}`;
  return { value, shown: value };
}

/** Posts one event, as often as it takes until the server responds. */
async function post(session: Session, url: string, event: EventSummary, secret: string): Promise<void> {
  const body = JSON.stringify(event.event);
  for (let failures = 0; ; failures++) {
    try {
      const response = await fetch(url, { method: 'POST', body, headers: webhookHeaders(event, body, secret), redirect: 'manual' });
      await response.body?.cancel();
      const status = styled(response.ok ? 'green' : 'red', String(response.status), process.stdout);
      return session.printStyled(`${status}  ${cell(event.id)}  ${cell(event.metadata.name || 'default')}  ${cell(body).slice(0, 200)}\n`);
    } catch (error) {
      if (failures === 0)
        session.warn(
          `${url} cannot be reached: ${cell(((error as Error).cause as Error | undefined)?.message ?? (error as Error).message)}; retrying`,
        );
      await sleep(Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** failures));
    }
  }
}

/** The headers with which Sluice delivers an event to a webhook: Standard Webhooks and CloudEvents. */
export function webhookHeaders(
  { id, indexed_at_ms, metadata }: EventSummary,
  body: string,
  secret: string,
  now = Date.now(),
): Record<string, string> {
  const [messageId, timestamp] = [`msg_${metadata.emit_id}`, String(Math.floor(now / 1000))];
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const stream = encodeURIComponent(metadata.name || 'default').replaceAll('%24', '$');
  return {
    'content-type': 'application/json',
    'webhook-id': messageId,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${createHmac('sha256', key).update(`${messageId}.${timestamp}.${body}`).digest('base64')}`,
    'ce-specversion': '1.0',
    'ce-id': id,
    'ce-source': metadata.emitter_id,
    'ce-type': stream,
    'ce-time': new Date(indexed_at_ms).toISOString(),
    'ce-sluiceemitter': metadata.emitter_id,
    'ce-sluiceevent': id,
    'ce-sluicestream': stream,
  };
}
