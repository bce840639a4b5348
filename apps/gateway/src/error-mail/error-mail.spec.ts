import { describe, expect, it } from '@jest/globals';
import { errorMail } from './error-mail.js';

const error = {
  id: 'e',
  owner_id: 'u_1',
  subject_id: 'dc_1',
  code: 'E\nBcc: x',
  message: 'no\n luck',
  raised_at_ms: 0,
  event_id: '1-2',
} as const;

describe('the mail about an error', () => {
  it('has a subject of one line, even if the code contains line breaks', () =>
    expect(errorMail(error, 0).subject).toBe('[Sluice] E Bcc: x in dc_1'));
  it('has the code and the message of the error in one line', () => expect(errorMail(error, 0).text).toContain('\n  E Bcc: x: no luck\n'));
  it('names the emitter, the time, the message and the event', () => {
    expect(errorMail(error, 0).text).toContain('dc_1 failed at 1970-01-01T00:00:00.000Z');
    expect(errorMail(error, 0).text).toContain('no luck');
    expect(errorMail(error, 0).text).toContain('1-2');
  });
  it('shows how to recover the deliveries to a webhook that was disabled', () => {
    const disabled = {
      ...error,
      subject_id: 'wh_1',
      code: 'WebhookDisabled',
      message: 'The webhook was disabled.',
      raised_at_ms: 120_000,
    } as const;
    const { text } = errorMail({ ...disabled, event_id: undefined }, 1);
    expect(text).toMatch(/^The webhook was disabled\./);
    expect(text).toContain('npx sluice on wh_1\n  npx sluice recover wh_1 --since 1970-01-01T00:01:00.000Z');
    expect(text).toContain('1 more of the same kind');
    expect(text).not.toContain('$errors');
  });
  it('contains the number of similar errors since the last mail', () => {
    expect(errorMail(error, 0).text).not.toContain('more of the same kind');
    expect(errorMail(error, 3).text).toContain('3 more of the same kind');
  });
  it('notifies the owner if no further mail follows for now', () => {
    expect(errorMail(error, 0).text).not.toContain('last mail for now');
    expect(errorMail(error, 0, true).text).toMatch(/\n\nThis is the last mail for now: you get at most 100 mails in 24 hours\.\n$/);
  });
});
