import { Inject, Injectable } from '@nestjs/common';
import { HourlyHousekeeping } from '#database';
import { LOG, type Log } from '#observability';
import { AccountsRepository } from './accounts/accounts.repository.js';
import { ErrorNoticesRepository } from './error-mail/error-notices.repository.js';
import { MailSender } from './error-mail/mail-sender.js';
import { IdempotencyRepository } from './idempotency/idempotency.repository.js';
import { UsageRepository } from './usage/usage.repository.js';

@Injectable()
export class Housekeeping extends HourlyHousekeeping {
  constructor(
    @Inject(LOG) log: Log,
    private readonly accounts: AccountsRepository,
    private readonly usage: UsageRepository,
    private readonly requests: IdempotencyRepository,
    private readonly notices: ErrorNoticesRepository,
    private readonly mails: MailSender,
  ) {
    super(log);
  }

  protected deletions(): (() => Promise<unknown>)[] {
    return [
      () => this.accounts.deleteOldKeys(),
      () => this.usage.deleteOld(),
      () => this.requests.deleteOld(),
      () => this.notices.deleteOld(),
      () => this.mails.giveUpOld(),
    ];
  }
}
