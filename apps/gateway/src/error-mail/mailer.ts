import { Inject, Injectable } from '@nestjs/common';
import { createTransport, type Transporter } from 'nodemailer';
import { LOG, type Log } from '#observability';
import { GatewayConfig } from '../gateway.config.js';

const TIMEOUT_MS = 10_000;

/** Sends mail by SMTP; without a configured server, it only logs the mail. */
@Injectable()
export class Mailer {
  private readonly transport: Transporter | undefined;

  constructor(
    private readonly config: GatewayConfig,
    @Inject(LOG) private readonly log: Log,
  ) {
    const { smtpUrl } = config;
    if (smtpUrl !== undefined) {
      this.transport = createTransport({
        url: smtpUrl,
        connectionTimeout: TIMEOUT_MS,
        greetingTimeout: TIMEOUT_MS,
        socketTimeout: TIMEOUT_MS,
      });
    }
  }

  /**
   * Throws if the server is unreachable or refuses the mail temporarily. A permanent refusal is only logged, and so is a temporary one if this is the last
   * attempt.
   */
  async send(mail: { to: string; subject: string; text: string }, { isLast = false } = {}): Promise<void> {
    if (!this.transport) return this.log.info({ to: mail.to, subject: mail.subject }, 'mail.not-sent-without-smtp');
    try {
      await this.transport.sendMail({ from: this.config.mailFrom, ...mail });
    } catch (error) {
      const { code, command, responseCode } = error as { code?: string; command?: string; responseCode?: number };
      // an error in our configuration, such as a wrong password, will be corrected; then the mail is sent
      const isOfMail = (command === 'RCPT TO' || command === 'DATA') && responseCode !== undefined;
      // an address to which nothing can be sent is refused here, before the server
      const isNoAddress = command === 'API' && code === 'EENVELOPE';
      const isRefused = isNoAddress || (isOfMail && (responseCode >= 500 || isLast));
      if (!isRefused) throw error;
      return this.log.error({ to: mail.to, subject: mail.subject, err: error }, 'mail.refused');
    }
    this.log.info({ to: mail.to, subject: mail.subject }, 'mail.sent');
  }
}
