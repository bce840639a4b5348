/** The error with which nodemailer reports that a mail was not sent. */
export interface SmtpFailure {
  message: string;
  code?: string;
  /** The command that failed; `API` if nodemailer refused the mail itself. */
  command?: string;
  response?: string;
  responseCode?: number;
}

/** RFC 3463: the address is wrong (5.1.1, 5.1.2, 5.1.3, 5.1.6, 5.1.10), or its mailbox accepts nothing (5.2.x). */
const OF_RECIPIENT = /^5\.(1\.([1236]|10)|2\.\d+)$/;
/** Words in which servers explain that they refuse the sender: that ends when the configuration is corrected. */
const OF_SENDER = /relay|sender|auth|log ?in|block|den[iy]|polic|spam/i;

/** Whether the recipient is refused for good, so that no further attempt can succeed. Any other failure may end. */
export function refusesRecipient({ message, code, command, response = '', responseCode = 0 }: SmtpFailure): boolean {
  // an address to which nothing can be sent; the sender may be one, too
  if (command === 'API') return code === 'EENVELOPE' && /recipient/i.test(message);
  if (command !== 'RCPT TO' || responseCode < 500) return false;
  const status = /^\d{3}[ -](\d\.\d+\.\d+)\b/.exec(response)?.[1];
  if (status !== undefined) return OF_RECIPIENT.test(status);
  return [550, 551, 553].includes(responseCode) && !OF_SENDER.test(response);
}
