import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { LRUCache } from 'lru-cache';
import { ErrorRaised, errorRaised } from '#contracts';
import { Consumes } from '#messaging';
import { LOG, type Log } from '#observability';
import { ErrorNoticesRepository } from './error-notices.repository.js';
import { Mailer } from './mailer.js';

/** Without a mail server, errors of one emitter are logged once in this time. */
const LOGGED_ONCE_IN_MS = 24 * 3_600_000;

/** The global error handler: notifies the owner of errors, by at most one mail per emitter and code in 24 hours. */
@Controller()
export class ErrorMailController {
  private readonly logged = new LRUCache<string, true>({ max: 10_000, ttl: LOGGED_ONCE_IN_MS });

  constructor(
    private readonly notices: ErrorNoticesRepository,
    private readonly mailer: Mailer,
    @Inject(LOG) private readonly log: Log,
  ) {}

  @Consumes(errorRaised, 'error-mail', { vital: false, concurrency: 4, maxOutstanding: 1000, gatherMs: 250 })
  async raised(@Payload() error: ErrorRaised): Promise<void> {
    if (this.mailer.isConfigured) return this.notices.count(error);
    // nothing is stored: once there is a mail server, the next error is mailed
    const { owner_id: account_id, subject_id } = error;
    if (this.logged.has(subject_id)) return;
    this.logged.set(subject_id, true);
    this.log.info({ account_id, subject_id }, 'mail.not-sent-without-smtp');
  }
}
