import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { type ErrorRaised, errorRaised } from '#contracts';
import { type BadRecord, KAFKA, type KafkaClient, LaneConsumer, payloadOf, Publisher, setAside, type Task } from '#messaging';
import { LOG, type Log } from '#observability';
import { errorMail } from './error-mail.js';
import { ErrorNoticesRepository } from './error-notices.repository.js';
import { Mailer } from './mailer.js';

const FORGET_EVERY_MS = 3_600_000;

/** The global error handler: tells the owner of each error, by at most one mail per emitter and code in 24 hours. */
@Injectable()
export class ErrorMailConsumer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly consumer: LaneConsumer;
  private forgetting: NodeJS.Timeout | undefined;

  constructor(
    @Inject(KAFKA) kafka: KafkaClient,
    @Inject(LOG) private readonly log: Log,
    private readonly notices: ErrorNoticesRepository,
    private readonly mailer: Mailer,
    publisher: Publisher,
  ) {
    this.consumer = new LaneConsumer(kafka, log, {
      group: 'gateway.error-mail',
      topics: [errorRaised.topic],
      vital: false,
      concurrency: 4,
      maxOutstanding: 1000,
      plan: (records) =>
        Promise.all(
          records.map((record) =>
            payloadOf(errorRaised, record).then(
              // a task that throws, because the mail server is away, runs again until it doesn't
              (error): Task[] => [{ lane: record.key ?? '', run: () => this.notify(error) }],
              (error: BadRecord) => [setAside(publisher, 'gateway', record, error.message)],
            ),
          ),
        ),
    });
  }

  onApplicationBootstrap(): void {
    // not awaited, as with the usage: the API need not wait for it
    void this.consumer.start();
    this.forgetting = setInterval(() => {
      this.notices.forgetSeen().catch((error: Error) => this.log.warn({ err: error }, 'error-notices.not-forgotten'));
    }, FORGET_EVERY_MS);
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.forgetting);
    await this.consumer.stop();
  }

  private async notify(error: ErrorRaised): Promise<void> {
    await this.notices.count(error, ({ email, since }) => this.mailer.send({ to: email, ...errorMail(error, since) }));
  }
}
