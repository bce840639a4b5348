import { describe, expect, it } from '@jest/globals';
import { refusesRecipient } from './recipient-refusal.js';

const refused = (command: string, response: string) =>
  refusesRecipient({ message: response, code: 'EENVELOPE', command, response, responseCode: Number(response.slice(0, 3)) });

describe('a mail server', () => {
  it.each([
    '550 5.1.1 <ada@example.com>: Recipient address rejected: User unknown',
    '550-5.1.1 The email account that you tried to reach does not exist.\n550 5.1.1 Please check it.',
    '550 5.1.2 Bad destination system',
    '501 5.1.3 Bad recipient address syntax',
    '551 5.1.6 The mailbox has moved',
    '550 5.1.10 Recipient not found',
    '552 5.2.2 Mailbox full',
    '550 5.2.1 Mailbox disabled',
    '550 No such user here',
    '551 User not local',
    '553 Mailbox name not allowed',
  ])('refuses the recipient by "%s"', (response) => {
    expect(refused('RCPT TO', response)).toBe(true);
  });

  it.each([
    ['MAIL FROM', '550 5.1.1 Unknown'],
    ['MAIL FROM', '553 5.7.1 Sender address rejected: not owned by user'],
    ['MAIL FROM', '530 5.7.0 Authentication required'],
    ['RCPT TO', '550 5.1.7 Bad sender address syntax'],
    ['RCPT TO', '550 5.1.8 Sender domain not found'],
    ['RCPT TO', '550 5.7.1 Relaying denied'],
    ['RCPT TO', '554 5.7.1 Relay access denied'],
    ['RCPT TO', '550 5.7.26 This mail has been blocked because the sender is unauthenticated'],
    ['RCPT TO', '550 relay not permitted'],
    ['RCPT TO', '550 Sender verify failed'],
    ['RCPT TO', '550 Blocked, see https://example.com'],
    ['RCPT TO', '530 Login required'],
    ['RCPT TO', '554 No SMTP service here'],
    ['RCPT TO', '450 4.2.0 Greylisted'],
    ['RCPT TO', '452 4.2.2 Mailbox full'],
    ['DATA', '554 5.7.1 Message rejected as spam'],
    ['DATA', '550 5.1.1 Unknown'],
    ['AUTH PLAIN', '535 5.7.8 Bad credentials'],
  ])('may accept a later attempt after it has responded to %s with "%s"', (command, response) => {
    expect(refused(command, response)).toBe(false);
  });

  it('cannot receive a mail to what is not an address', () => {
    const failure = (message: string) => refusesRecipient({ message, code: 'EENVELOPE', command: 'API' });
    expect([failure('No recipients defined'), failure('Invalid recipient "x"'), failure('Invalid sender "x"')]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('may accept a later attempt when it was not reached', () => {
    expect(refusesRecipient({ message: 'Timeout', code: 'ETIMEDOUT', command: 'CONN' })).toBe(false);
  });
});
