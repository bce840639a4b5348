import { verifyWebhook, WebhookVerificationError } from '@sluice/client';
import { findWebhook } from '../resources/find.js';
import { CliError, usageError } from '../session/errors.js';
import { parseExactly } from '../session/exact-json.js';
import { secretFrom, utf8 } from '../session/files.js';
import type { Session } from '../session/session.js';

export interface VerifyOptions {
  header?: string[];
  secretFile?: string;
  webhook?: string;
  tolerance?: string;
}

/**
 * `sluice verify`: verifies a delivery on standard input: its body, with the headers as options, or the whole HTTP request. Exits with 1 if it is not
 * authentic.
 */
export async function verify(session: Session, { header, secretFile, webhook, tolerance = '300' }: VerifyOptions): Promise<void> {
  const secret = await secretOf(session, secretFile, webhook);
  const input = await session.stdinBytes();
  const { headers, body } = header ? { headers: headersOf(header), body: input } : requestOf(input);
  const toleranceSeconds = tolerance === 'none' ? Number.POSITIVE_INFINITY : Number(tolerance);
  if (Number.isNaN(toleranceSeconds)) throw usageError('--tolerance must be a number of seconds, or none');
  try {
    await verifyWebhook(secret, headers, body, { toleranceSeconds });
    if (session.format === 'table') session.print('authentic\n');
    else session.item(parseExactly(utf8(body, 'the body')));
  } catch (error) {
    if (error instanceof WebhookVerificationError) throw new CliError(`not authentic: ${error.message}`);
    // of its arguments, only the secret can be malformed here
    if (error instanceof TypeError) throw usageError(error.message);
    throw error;
  }
}

/** `sluice secret WEBHOOK`: prints the signing secret, or replaces it by a new one. */
export async function secret(session: Session, text: string, { rotate }: { rotate?: boolean }): Promise<void> {
  const path = { id: (await findWebhook(session.sluice, text, { exactly: rotate })).id };
  const { data } = await (rotate ? session.sluice.rotateWebhookSecret({ path }) : session.sluice.getWebhookSecret({ path }));
  if (session.format === 'table') session.print(`${data.secret}\n`);
  else session.item(data);
}

async function secretOf(session: Session, secretFile: string | undefined, webhook: string | undefined): Promise<string> {
  if (webhook !== undefined)
    return (await session.sluice.getWebhookSecret({ path: { id: (await findWebhook(session.sluice, webhook)).id } })).data.secret;
  const secret = secretFrom(secretFile, session.env.SLUICE_WEBHOOK_SECRET);
  if (secret === undefined) throw usageError('--webhook, --secret-file or SLUICE_WEBHOOK_SECRET is required');
  return secret;
}

/** Headers by lower-case name, of lines `name: value`. */
export function headersOf(lines: string[]): Record<string, string> {
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf(':');
      if (at < 1) throw usageError(`a header is written name: value, not ${line}`);
      return [line.slice(0, at).trim().toLowerCase(), line.slice(at + 1).trim()];
    }),
  );
}

/** An HTTP request: an optional request line, headers, an empty line, the body. */
export function requestOf(request: Buffer): { headers: Record<string, string>; body: Buffer } {
  // one character for each byte
  const text = request.toString('latin1');
  const end = /\r?\n\r?\n/.exec(text);
  if (!end) throw usageError('standard input must be an HTTP request with headers; to pass only the body, use -H');
  const lines = text.slice(0, end.index).split(/\r?\n/);
  const isRequestLine = /^[A-Z]+ \S+( HTTP\/[\d.]+)?$/.test(lines[0] ?? '');
  return { headers: headersOf(lines.slice(isRequestLine ? 1 : 0)), body: request.subarray(end.index + end[0].length) };
}
