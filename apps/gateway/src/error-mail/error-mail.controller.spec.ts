import { beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import type { ErrorRaised } from '#contracts';
import { LOG } from '#observability';
import { ErrorMailController } from './error-mail.controller.js';
import { ErrorNoticesRepository } from './error-notices.repository.js';
import { Mailer } from './mailer.js';

const ERROR: ErrorRaised = { id: 'e', owner_id: 'u_1', subject_id: 'dc_1', code: 'E_X', message: 'no luck', raised_at_ms: 0 };

describe('an error of a source', () => {
  let counted: ErrorRaised[];
  let logged: unknown[][];

  beforeEach(() => {
    counted = [];
    logged = [];
  });

  const controllerWith = async (mailer: Pick<Mailer, 'isConfigured'>) => {
    const module = await Test.createTestingModule({
      controllers: [ErrorMailController],
      providers: [
        { provide: ErrorNoticesRepository, useValue: { count: async (error: ErrorRaised) => void counted.push(error) } },
        { provide: Mailer, useValue: mailer },
        { provide: LOG, useValue: { info: (...line: unknown[]) => logged.push(line) } },
      ],
    }).compile();
    return module.get(ErrorMailController);
  };

  it('is counted, and not logged, if there is a mail server', async () => {
    await (await controllerWith({ isConfigured: true })).raised(ERROR);
    expect({ counted, logged }).toEqual({ counted: [ERROR], logged: [] });
  });

  it('is only logged without a mail server, once a day for each emitter and without its code', async () => {
    const controller = await controllerWith({ isConfigured: false });
    for (const subject_id of ['dc_1', 'dc_2', 'dc_1']) await controller.raised({ ...ERROR, subject_id });
    const line = (subject_id: string) => [{ account_id: 'u_1', subject_id }, 'mail.not-sent-without-smtp'];
    expect({ counted, logged }).toEqual({ counted: [], logged: [line('dc_1'), line('dc_2')] });
  });
});
