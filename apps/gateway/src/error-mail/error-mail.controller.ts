import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { ErrorRaised, errorRaised, isId, Unavailable } from '#contracts';
import { Consumes } from '#messaging';
import { type DueMail, ErrorNoticesRepository } from './error-notices.repository.js';
import { Mailer } from './mailer.js';

/** A mail that the server refuses temporarily, such as by greylisting or because a mailbox is full, is sent again for this time: mails to others may wait for it. */
const ATTEMPTS_MS = 10 * 60_000;

/** The global error handler: notifies the owner of errors, by at most one mail per emitter and code in 24 hours. */
@Controller()
export class ErrorMailController {
  private previous: Promise<void> = Promise.resolve();

  constructor(
    private readonly notices: ErrorNoticesRepository,
    private readonly mailer: Mailer,
  ) {}

  @Consumes(errorRaised, 'error-mail', { vital: false, concurrency: 4, maxOutstanding: 1000, gatherMs: 250 })
  async raised(@Payload() error: ErrorRaised): Promise<void> {
    // One at a time: each keeps a connection to the database while the mail server responds, and requests to the API need them. Errors that are
    // retried later, such as those of a mailbox that is full, do not hold up the others.
    const counted = this.previous.then(() => this.notices.count(error, (due) => this.send(error, due)));
    this.previous = counted.catch(() => {});
    await counted;
  }

  /** The error is counted together with its mail, so it is retried while the mail server is unavailable. */
  private async send(error: ErrorRaised, { email, since }: DueMail): Promise<void> {
    try {
      const isLast = Date.now() - error.raised_at_ms > ATTEMPTS_MS;
      await this.mailer.send({ to: email, ...errorMail(error, since) }, { isLast });
    } catch (failure) {
      throw new Unavailable(`the mail server does not accept mail: ${(failure as Error).message}`);
    }
  }
}

/** The recovery includes deliveries that failed just before the webhook was disabled. */
const BEFORE_MS = 60_000;

/** The text of the mail about an error. */
export function errorMail(
  { subject_id, code, message, raised_at_ms, event_id }: ErrorRaised,
  since: number,
): { subject: string; text: string } {
  const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim();
  const rest = since === 0 ? '' : `\nSince the last mail about this error, there were ${since} more of the same kind.\n`;
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
`,
    };
  }
  return {
    subject,
    text: `${subject_id} failed at ${new Date(raised_at_ms).toISOString()}.

  ${code}: ${oneLine(message)}
${event_id === undefined ? '' : `\nThe event ${event_id} on its stream $errors has the details.\n`}${rest}
You get at most one mail about this error in 24 hours. To receive every one, subscribe a webhook to the stream $errors.
`,
  };
}
