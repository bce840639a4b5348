import { beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import type { ErrorRaised } from '#contracts';
import { ErrorMailController } from './error-mail.controller.js';
import { type DueMail, ErrorNoticesRepository } from './error-notices.repository.js';
import { Mailer } from './mailer.js';

const ERROR: ErrorRaised = { id: 'e', owner_id: 'u_1', subject_id: 'dc_1', code: 'E_X', message: 'no luck', raised_at_ms: 0 };

describe('an error of a source', () => {
  let due: DueMail | undefined;
  let counted: ErrorRaised[];
  let mails: { to: string; subject: string; text: string }[];
  let failure: Error | undefined;
  let [atOnce, mostAtOnce] = [0, 0];
  let controller: ErrorMailController;

  beforeEach(async () => {
    due = { email: 'ada@example.com', since: 2 };
    counted = [];
    mails = [];
    failure = undefined;
    [atOnce, mostAtOnce] = [0, 0];
    // In place of ErrorNoticesRepository: counts an error together with its mail, as a transaction does.
    const count = async (error: ErrorRaised, mail: (due: DueMail) => Promise<void>) => {
      mostAtOnce = Math.max(mostAtOnce, ++atOnce);
      try {
        if (due) await mail(due);
        counted.push(error);
      } finally {
        atOnce -= 1;
      }
    };
    const send = async (mail: (typeof mails)[number]) => {
      if (failure) throw failure;
      mails.push(mail);
    };
    const module = await Test.createTestingModule({
      controllers: [ErrorMailController],
      providers: [
        { provide: ErrorNoticesRepository, useValue: { count } },
        { provide: Mailer, useValue: { send } },
      ],
    }).compile();
    controller = module.get(ErrorMailController);
  });

  it('is mailed to its owner when a mail is due, with the number of errors since the last mail', async () => {
    await controller.raised(ERROR);
    expect(mails).toEqual([{ to: 'ada@example.com', subject: '[Sluice] E_X in dc_1', text: expect.stringContaining('2 more') }]);
  });

  it('waits for the errors before it, so that a slow mail server occupies one connection to the database', async () => {
    await Promise.all(['e', 'f', 'g'].map((id) => controller.raised({ ...ERROR, id })));
    expect({ mostAtOnce, counted: counted.map(({ id }) => id) }).toEqual({ mostAtOnce: 1, counted: ['e', 'f', 'g'] });
  });

  it('is only counted when no mail is due', async () => {
    due = undefined;
    await controller.raised(ERROR);
    expect({ mails, counted }).toEqual({ mails: [], counted: [ERROR] });
  });

  it('is not counted, and is handled again, while the mail server is unavailable', async () => {
    failure = new Error('connect ECONNREFUSED');
    await expect(controller.raised(ERROR)).rejects.toMatchObject({ code: 'unavailable' });
    expect(counted).toEqual([]);
    failure = undefined;
    await controller.raised(ERROR);
    expect(counted).toEqual([ERROR]);
  });
});
