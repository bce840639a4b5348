import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { ErrorRaised, errorRaised, Unavailable } from '#contracts';
import { Consumes } from '#messaging';
import { errorMail } from './error-mail.js';
import { type DueMail, ErrorNoticesRepository } from './error-notices.repository.js';
import { Mailer } from './mailer.js';

/** The global error handler: notifies the owner of errors, by at most one mail per emitter and code in 24 hours. */
@Controller()
export class ErrorMailController {
  constructor(
    private readonly notices: ErrorNoticesRepository,
    private readonly mailer: Mailer,
  ) {}

  @Consumes(errorRaised, 'error-mail', { vital: false, concurrency: 4, maxOutstanding: 1000, gatherMs: 250 })
  async raised(@Payload() error: ErrorRaised): Promise<void> {
    await this.notices.count(error, (due) => this.send(error, due));
  }

  /** The error is counted together with its mail, so it is retried while the mail server is unavailable. */
  private async send(error: ErrorRaised, { email, since }: DueMail): Promise<void> {
    try {
      await this.mailer.send({ to: email, ...errorMail(error, since) });
    } catch (failure) {
      throw new Unavailable(`the mail server does not accept mail: ${(failure as Error).message}`);
    }
  }
}
