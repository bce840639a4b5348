import { Injectable } from '@nestjs/common';
import { createTransport, type Transporter } from 'nodemailer';
import { GatewayConfig } from '../gateway.config.js';
import { refusesRecipient, type SmtpFailure } from './recipient-refusal.js';

const CONNECT_MS = 10_000;
/** RFC 5321, 4.5.3.2.6: a server that has received a mail may take this long to respond. If the client gives up earlier, the mail arrives several times. */
const RESPONSE_MS = 10 * 60_000;
/** An attempt ends after this time in any case, before the lease of the mail expires. */
const ATTEMPT_MS = 12 * 60_000;

/** refused: no further attempt can succeed. `reason` does not contain the text of the mail. */
export type MailOutcome = { outcome: 'sent' } | { outcome: 'refused' | 'failed'; reason: string };

/** Sends mail by SMTP. */
@Injectable()
export class Mailer {
  private readonly transport: Transporter | undefined;

  constructor(private readonly config: GatewayConfig) {
    const { smtpUrl: url } = config;
    if (url === undefined) return;
    this.transport = createTransport({
      // parameters of the URL take precedence over these options
      ...{ url, requireTLS: mustEncrypt(new URL(url)) },
      ...{ connectionTimeout: CONNECT_MS, greetingTimeout: CONNECT_MS, socketTimeout: RESPONSE_MS },
    });
  }

  get isConfigured(): boolean {
    return this.transport !== undefined;
  }

  /** Throws if the server cannot be reached, or refuses the login. */
  async check(): Promise<void> {
    await this.transport?.verify();
  }

  async send(mail: { to: string; subject: string; text: string }): Promise<MailOutcome> {
    try {
      await this.transport!.sendMail({ from: this.config.mailFrom, ...mail, signal: AbortSignal.timeout(ATTEMPT_MS) });
      return { outcome: 'sent' };
    } catch (error) {
      const failure = error as SmtpFailure;
      return { outcome: refusesRecipient(failure) ? 'refused' : 'failed', reason: reasonOf(failure) };
    }
  }
}

/** With a password, unless the server is on this machine: one that offers no STARTTLS, or an attacker who removes the offer, would get it unencrypted. */
function mustEncrypt({ protocol, username, password, hostname }: URL): boolean {
  return protocol === 'smtp:' && username + password !== '' && !/^(localhost|127(\.\d+){3}|\[::1\])$/i.test(hostname);
}

/** A server that has received the mail may quote it in its response: then only the codes at the beginning are safe. */
function reasonOf({ message, code, response = '' }: SmtpFailure): string {
  return code === 'EMESSAGE' ? /^[\d .-]*/.exec(response)![0].trim() : message;
}
