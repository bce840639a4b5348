import { beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { AccountPace } from '#fairness';
import { CallerGone, TooMuchWaiting } from '#limits';
import type { LogRecord } from '#messaging';
import { type Caller, ComponentRejected, Sandbox } from '../sandbox/sandbox.js';
import { TooMuchDownloaded } from '../sandbox/packages/download-quota.js';
import { ComponentsController } from './components.controller.js';

const DEADLINE = 1_800_000_000_000;
const RECORD = { header: (name: string) => (name === 'deadline' ? String(DEADLINE) : undefined) } as LogRecord;
const FILES = { entry: 'a.mjs', files: { 'a.mjs': '' } };

describe('what the runtime returns about a component', () => {
  let failure: Error | undefined;
  let turns: [account: string, units: number][];
  let isItsTurn: boolean;
  let callers: Caller[];
  let controller: ComponentsController;

  beforeEach(async () => {
    failure = undefined;
    turns = [];
    isItsTurn = true;
    callers = [];
    const requestTurn = async (account: string, units: number) => (turns.push([account, units]), isItsTurn);
    const orFail =
      <T>(result: (given: any) => T) =>
      async (given: unknown, caller: Caller): Promise<T> => {
        callers.push(caller);
        if (failure) throw failure;
        return result(given);
      };
    const sandbox = {
      inspect: orFail(({ code, hash }) => ({ name: code as string, key: hash as string })),
      bundle: orFail(() => 'bundled'),
    };
    const module = await Test.createTestingModule({
      controllers: [ComponentsController],
      providers: [
        { provide: Sandbox, useValue: sandbox },
        { provide: AccountPace, useValue: { requestTurn } },
      ],
    }).compile();
    controller = module.get(ComponentsController);
  });

  it('is what the sandbox reads from its code, under the hash of the code', async () => {
    expect(await controller.inspect({ code: 'abc' }, RECORD)).toEqual({
      name: 'abc',
      key: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    });
    expect(await controller.bundle(FILES, RECORD)).toEqual({ code: 'bundled' });
  });

  it('waits in the sandbox as the account, and until the deadline of the request', async () => {
    await controller.inspect({ code: '', owner_id: 'u_1' }, RECORD);
    await controller.bundle({ ...FILES, owner_id: 'u_1' }, RECORD);
    expect(callers).toMatchObject(Array(2).fill({ accountId: 'u_1', until: DEADLINE }));
  });

  it('names the field of the request when the sandbox rejects the code', async () => {
    failure = new ComponentRejected('line 3 does not parse', 3);
    const message = expect.stringContaining('line 3 does not parse');
    await expect(controller.inspect({ code: '' }, RECORD)).rejects.toMatchObject({
      details: { errors: [{ field: 'component_code', message }] },
    });
    await expect(controller.bundle(FILES, RECORD)).rejects.toMatchObject({ details: { errors: [{ field: 'component_url', message }] } });
  });

  it('waits for the turn of the account, and costs as much as a run', async () => {
    await controller.inspect({ code: '', owner_id: 'u_1' }, RECORD);
    await controller.bundle({ ...FILES, owner_id: 'u_1' }, RECORD);
    expect(turns).toEqual([
      ['u_1', 1],
      ['u_1', 1],
    ]);
  });

  it('is too_many_requests while too many of the account wait for its turn', async () => {
    isItsTurn = false;
    failure = new Error('it was inspected');
    await expect(controller.inspect({ code: '', owner_id: 'u_1' }, RECORD)).rejects.toMatchObject({ code: 'too_many_requests' });
    await expect(controller.bundle({ ...FILES, owner_id: 'u_1' }, RECORD)).rejects.toMatchObject({ code: 'too_many_requests' });
  });

  it.each([
    ['too_many_requests', 'too many wait already', () => new TooMuchWaiting('too many components wait')],
    ['too_many_requests', 'the account has downloaded enough', () => new TooMuchDownloaded('enough for today')],
    ['timeout', 'the caller has given up', () => new CallerGone('nobody waits for it')],
  ])('is %s when %s', async (code, _, thrown) => {
    failure = thrown();
    await expect(controller.inspect({ code: '' }, RECORD)).rejects.toMatchObject({ code });
    await expect(controller.bundle(FILES, RECORD)).rejects.toMatchObject({ code });
  });

  it('is the sandbox’s own error when the fault is not the component’s', async () => {
    failure = new Error('no processes left');
    await expect(controller.inspect({ code: '' }, RECORD)).rejects.toBe(failure);
    await expect(controller.bundle(FILES, RECORD)).rejects.toBe(failure);
  });
});
