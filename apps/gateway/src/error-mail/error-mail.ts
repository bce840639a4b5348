import { type ErrorRaised, isId } from '#contracts';
import { MOST_MAILS } from './error-notices.repository.js';

/** The recovery includes deliveries that failed just before the webhook was disabled. */
const BEFORE_MS = 60_000;

/** The text of the mail about an error. */
export function errorMail(
  { subject_id, code, message, raised_at_ms, event_id }: ErrorRaised,
  since: number,
  isLast = false,
): { subject: string; text: string } {
  const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim();
  const rest = since === 0 ? '' : `\nSince the last mail about this error, there were ${since} more of the same kind.\n`;
  const last = isLast ? `\nThis is the last mail for now: you get at most ${MOST_MAILS} mails in 24 hours.\n` : '';
  const subject = oneLine(`[Sluice] ${code} in ${subject_id}`).slice(0, 200);
  // not an event on `$errors`: a webhook has no streams
  if (isId('webhook', subject_id)) {
    return {
      subject,
      text: `${oneLine(message)}

This happened at ${new Date(raised_at_ms).toISOString()}. The deliveries that waited for the webhook have failed. When its receiver works again, switch the
webhook on and deliver them:

  npx sluice on ${subject_id}
  npx sluice recover ${subject_id} --since ${new Date(raised_at_ms - BEFORE_MS).toISOString()}
${rest}
You get at most one mail about this webhook in 24 hours.
${last}`,
    };
  }
  return {
    subject,
    text: `${subject_id} failed at ${new Date(raised_at_ms).toISOString()}.

  ${oneLine(`${code}: ${message}`)}
${event_id === undefined ? '' : `\nThe event ${event_id} on its stream $errors has the details.\n`}${rest}
You get at most one mail about this error in 24 hours. To receive every one, subscribe a webhook to the stream $errors.
${last}`,
  };
}
