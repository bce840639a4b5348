import { Inject, Injectable } from '@nestjs/common';
import { DueWork } from '#due-work';
import { counter, gauge, LOG, type Log } from '#observability';
import { Rounds } from '#service';
import { DEFAULT_SENDER, GatewayConfig } from '../gateway.config.js';
import { errorMail } from './error-mail.js';
import { ErrorNoticesRepository, type LeasedMail } from './error-notices.repository.js';
import { Mailer } from './mailer.js';

/** Minutes after each failed attempt; then every four hours. */
const RETRY_AFTER = [1, 10, 60, 240];
/** The last one is almost three days after the first. */
const MOST_ATTEMPTS = 21;
/** While the mail server cannot be reached, it is checked again after this time. */
const PAUSE_MS = 60_000;
/** The lease of an interrupted mail expires, and it is sent again. */
const STOP_MS = 5000;

const COUNT_EVERY_MS = 60_000;

const NEEDS_SENDER = 'set SLUICE_MAIL_FROM: most mail servers refuse the default';

const mails = counter('error_mails_total', 'Mails about errors that have left the queue: sent, refused or given up.', ['outcome']);
const waiting = gauge('error_mails_waiting', 'Mails about errors that are not sent yet, of all accounts; counted every minute.');

/**
 * Sends the mails about errors that are due, one at a time, at least once: a gateway that is killed while it sends one leaves it to another attempt after
 * the lease. Accounts take turns.
 */
@Injectable()
export class MailSender extends DueWork {
  private lastAccount = '';
  /** An attempt has failed, perhaps because the server accepts no mail at all: if so, the mails that wait keep their attempts. */
  private mustCheck = false;
  private pausedUntil = 0;

  constructor(
    private readonly notices: ErrorNoticesRepository,
    private readonly mailer: Mailer,
    private readonly config: GatewayConfig,
    @Inject(LOG) log: Log,
  ) {
    super(notices, log, { batch: 1, failure: 'mail.interrupted' });
  }

  override onApplicationBootstrap(): void {
    if (!this.mailer.isConfigured) return;
    if (this.config.mailFrom === DEFAULT_SENDER) this.log.warn({ from: DEFAULT_SENDER, reason: NEEDS_SENDER }, 'mail.default-sender');
    super.onApplicationBootstrap();
  }

  override async beforeApplicationShutdown(): Promise<void> {
    await Promise.race([super.beforeApplicationShutdown(), new Promise((resolve) => setTimeout(resolve, STOP_MS).unref())]);
  }

  async handleDue(): Promise<number> {
    if (this.mustCheck) await this.check();
    const mail = await this.notices.leaseMail(this.lastAccount);
    if (!mail) return 0;
    this.lastAccount = mail.account_id;
    await this.send(mail);
    return 1;
  }

  protected override async msToNext(): Promise<number | null> {
    const pause = this.pausedUntil - performance.now();
    return pause > 0 ? pause : super.msToNext();
  }

  private async check(): Promise<void> {
    try {
      await this.mailer.check();
    } catch (error) {
      this.pausedUntil = performance.now() + PAUSE_MS;
      throw error;
    }
    this.mustCheck = false;
  }

  private async send({ id, account_id, error, since, is_last, attempts, email: to }: LeasedMail): Promise<void> {
    if (to === null) return this.notices.deleteMail(id);
    const result = await this.mailer.send({ to, ...errorMail(error, since, is_last) });
    // neither the subject nor the text: the code and the message of an error may contain secrets
    const fields = { account_id, subject_id: error.subject_id, to, attempt: attempts };
    if (result.outcome === 'sent') this.log.info(fields, 'mail.sent');
    else if (result.outcome === 'refused') this.log.error({ ...fields, reason: result.reason }, 'mail.refused');
    else {
      this.mustCheck = true;
      if (attempts < MOST_ATTEMPTS) {
        this.log.warn({ ...fields, reason: result.reason }, 'mail.postponed');
        return this.notices.postponeMail(id, RETRY_AFTER[attempts - 1] ?? RETRY_AFTER.at(-1)!);
      }
      this.log.error({ ...fields, reason: result.reason }, 'mail.given-up');
    }
    mails.inc({ outcome: result.outcome === 'failed' ? 'given-up' : result.outcome });
    await this.notices.deleteMail(id);
  }

  @Rounds(COUNT_EVERY_MS, 'mails.not-counted')
  async count(): Promise<void> {
    if (this.mailer.isConfigured) waiting.set(await this.notices.countMails());
  }

  /** Gives up mails that could not be attempted for a week. */
  async giveUpOld(): Promise<void> {
    const count = await this.notices.deleteOldMails();
    if (count === 0) return;
    mails.inc({ outcome: 'given-up' }, count);
    this.log.error({ count }, 'mail.given-up');
  }
}
