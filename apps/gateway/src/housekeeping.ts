import { Inject, Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { LOG, type Log } from '#observability';
import { ErrorNoticesRepository } from './error-mail/error-notices.repository.js';
import { MailSender } from './error-mail/mail-sender.js';
import { IdempotencyRepository } from './idempotency/idempotency.repository.js';
import { UsageRepository } from './usage/usage.repository.js';

const HOUR_MS = 3_600_000;

/** Deletes rows that are no longer read. */
@Injectable()
export class Housekeeping {
  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly usage: UsageRepository,
    private readonly requests: IdempotencyRepository,
    private readonly notices: ErrorNoticesRepository,
    private readonly mails: MailSender,
  ) {}

  @Interval(HOUR_MS)
  async deleteOld(): Promise<void> {
    try {
      await Promise.all([this.usage.deleteOld(), this.requests.deleteOld(), this.notices.deleteOld(), this.mails.giveUpOld()]);
    } catch (error) {
      this.log.warn({ err: error }, 'housekeeping.failed');
    }
  }
}
