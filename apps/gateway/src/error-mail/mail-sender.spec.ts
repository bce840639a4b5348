import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { GatewayConfig } from '../gateway.config.js';
import { type Log, metrics } from '#observability';
import type { ErrorNoticesRepository, LeasedMail } from './error-notices.repository.js';
import { MailSender } from './mail-sender.js';
import type { Mailer, MailOutcome } from './mailer.js';

const LAST_ATTEMPT = 21;
const MAIL: LeasedMail = {
  ...{ id: 'e', account_id: 'u_1', since: 0, is_last: false, attempts: 1, email: 'ada@example.com' },
  error: { id: 'e', owner_id: 'u_1', subject_id: 'dc_1', code: 'secret', message: 'no luck', raised_at_ms: 0 },
};

describe('the sender of mails', () => {
  let waiting: LeasedMail[];
  let outcome: MailOutcome | Promise<MailOutcome>;
  let isDown: boolean;
  let isConfigured: boolean;
  /** The steps of the sender, in order. */
  let done: string[];
  let logged: unknown[];
  let sender: MailSender;

  beforeEach(() => {
    jest.useFakeTimers({ now: 0 });
    waiting = [MAIL];
    outcome = { outcome: 'sent' };
    [isDown, isConfigured] = [false, true];
    done = [];
    logged = [];
    const notices = {
      listen() {},
      msToNext: async () => (done.push('look'), waiting.length > 0 ? 0 : null),
      leaseMail: async (after: string) => (done.push(`lease after "${after}"`), waiting.shift()),
      postponeMail: async (_id: string, minutes: number) => void done.push(`postpone by ${minutes}`),
      deleteMail: async () => void done.push('delete'),
      countMails: async () => {
        if (isDown) throw new Error('down');
        return 7;
      },
    };
    const mailer = {
      get isConfigured() {
        return isConfigured;
      },
      async check() {
        done.push('check');
        if (isDown) throw new Error('connect ECONNREFUSED');
      },
      async send({ to, subject }: { to: string; subject: string }) {
        done.push(`send ${subject} to ${to}`);
        return outcome;
      },
    };
    const note = (fields: object, name: string) => void logged.push([name, fields]);
    const log = { info: note, warn: note, error: note };
    sender = new MailSender(
      notices as unknown as ErrorNoticesRepository,
      mailer as unknown as Mailer,
      GatewayConfig.read({}),
      log as unknown as Log,
    );
  });
  afterEach(async () => {
    void sender.beforeApplicationShutdown();
    await jest.advanceTimersByTimeAsync(5000);
    jest.useRealTimers();
  });

  const fields = { account_id: 'u_1', subject_id: 'dc_1', to: 'ada@example.com', attempt: 1 };
  const sent = 'send [Sluice] secret in dc_1 to ada@example.com';

  it('sends a mail, then deletes it, and does not log the code of the error', async () => {
    expect([await sender.handleDue(), await sender.handleDue()]).toEqual([1, 0]);
    expect(done).toEqual(['lease after ""', sent, 'delete', 'lease after "u_1"']);
    expect(logged).toEqual([['mail.sent', fields]]);
  });

  it('drops a mail whose account gets none any more', async () => {
    waiting = [{ ...MAIL, email: null }];
    await sender.handleDue();
    expect({ done, logged }).toEqual({ done: ['lease after ""', 'delete'], logged: [] });
  });

  it('gives up a mail at once if the server refuses its recipient', async () => {
    outcome = { outcome: 'refused', reason: '550 no such user' };
    await sender.handleDue();
    expect(done).toEqual(['lease after ""', sent, 'delete']);
    expect(logged).toEqual([['mail.refused', { ...fields, reason: '550 no such user' }]]);
  });

  it.each([
    [1, 1],
    [2, 10],
    [3, 60],
    [4, 240],
    [LAST_ATTEMPT - 1, 240],
  ])('postpones a mail after attempt %d by %d minutes', async (attempts, minutes) => {
    waiting = [{ ...MAIL, attempts }];
    outcome = { outcome: 'failed', reason: '450' };
    await sender.handleDue();
    expect(done).toEqual(['lease after ""', sent, `postpone by ${minutes}`]);
    expect(logged).toEqual([['mail.postponed', { ...fields, attempt: attempts, reason: '450' }]]);
  });

  it('gives up a mail after its last attempt has failed', async () => {
    waiting = [{ ...MAIL, attempts: LAST_ATTEMPT }];
    outcome = { outcome: 'failed', reason: '450' };
    await sender.handleDue();
    expect(done).toEqual(['lease after ""', sent, 'delete']);
    expect(logged).toEqual([['mail.given-up', { ...fields, attempt: LAST_ATTEMPT, reason: '450' }]]);
  });

  it('attempts no further mail while the server is down, and checks it once a minute', async () => {
    [isDown, outcome] = [true, { outcome: 'failed', reason: 'connect ECONNREFUSED' }];
    waiting = [MAIL, MAIL];
    sender.onApplicationBootstrap();
    await jest.advanceTimersByTimeAsync(130_000);
    expect(done.filter((step) => step !== 'look')).toEqual(['lease after ""', sent, 'postpone by 1', 'check', 'check', 'check']);
    [isDown, outcome] = [false, { outcome: 'sent' }];
    done = [];
    await jest.advanceTimersByTimeAsync(60_000);
    expect(done.filter((step) => step !== 'look')).toEqual(['check', 'lease after "u_1"', sent, 'delete']);
  });

  it('counts the mails that wait, and logs a failure', async () => {
    const count = async () => {
      await sender.count();
      return (await metrics.getSingleMetric('sluice_error_mails_waiting')!.get()).values[0]?.value;
    };
    expect(await count()).toBe(7);
    isDown = true;
    expect(await count()).toBe(7);
    expect(logged).toEqual([['mails.not-counted', { err: new Error('down') }]]);
  });

  it('waits five seconds for the mail in progress when the process stops', async () => {
    outcome = new Promise<MailOutcome>(() => {});
    sender.onApplicationBootstrap();
    await jest.advanceTimersByTimeAsync(1000);
    let stopped = false;
    void sender.beforeApplicationShutdown().then(() => (stopped = true));
    await jest.advanceTimersByTimeAsync(4900);
    expect(stopped).toBe(false);
    await jest.advanceTimersByTimeAsync(200);
    expect(stopped).toBe(true);
  });

  it('warns of the default sender at the start', async () => {
    waiting = [];
    sender.onApplicationBootstrap();
    await jest.advanceTimersByTimeAsync(1);
    expect(logged).toEqual([['mail.default-sender', expect.objectContaining({ reason: expect.stringContaining('set SLUICE_MAIL_FROM') })]]);
  });

  it('does not look for mails without a mail server', async () => {
    isConfigured = false;
    sender.onApplicationBootstrap();
    await jest.advanceTimersByTimeAsync(10_000);
    expect({ done, logged }).toEqual({ done: [], logged: [] });
  });
});
