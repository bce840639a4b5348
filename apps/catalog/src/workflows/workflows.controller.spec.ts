import { beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { LogRecord, rejected } from '#messaging';
import { createLog, LOG } from '#observability';
import { WorkflowsController } from './workflows.controller.js';
import { WorkflowsRepository } from './workflows.repository.js';

describe('a record of the topic workflows', () => {
  let controller: WorkflowsController;
  let calls: unknown[][];
  let failure: Error | undefined;
  let isOwn: boolean;

  beforeEach(async () => {
    calls = [];
    failure = undefined;
    isOwn = true;
    const called =
      (name: string) =>
      async (...args: unknown[]) => {
        if (failure) throw failure;
        calls.push([name, ...args]);
        return isOwn;
      };
    const module = await Test.createTestingModule({
      controllers: [WorkflowsController],
      providers: [
        { provide: WorkflowsRepository, useValue: { put: called('put'), remove: called('remove') } },
        { provide: LOG, useValue: createLog('test', 'silent') },
      ],
    }).compile();
    controller = module.get(WorkflowsController);
  });

  const take = (key: string, value: string | null) =>
    controller.changed(
      new LogRecord(
        'workflows',
        0,
        {
          key: Buffer.from(key),
          value: value === null ? null : Buffer.from(value),
          offset: '0',
          timestamp: '5',
          attributes: 0,
          headers: {},
        },
        0,
      ),
    );
  const REGISTERED = '{"id":"p_1","owner_id":"u_1","name":"Mail","active":false}';

  it('registers, changes or removes the workflow of its key', async () => {
    expect(await take('p_1', REGISTERED)).toBeUndefined();
    expect(await take('p_1', null)).toBeUndefined();
    expect(calls).toEqual([
      ['put', 'p_1', 'u_1', 'Mail', false],
      ['remove', 'p_1', 5],
    ]);
  });

  it('is set aside if it names another owner', async () => {
    isOwn = false;
    expect(await take('p_1', REGISTERED)).toEqual(
      rejected('the workflow has another owner, also if it was removed: register it under a new id'),
    );
  });

  it.each([
    ['is not JSON', '{'],
    ['names another workflow than its key', '{"id":"p_2","owner_id":"u_1"}'],
    ['has no owner', '{}'],
  ])('is rejected, and changes nothing, when it %s', async (_, value) => {
    expect(await take('p_1', value)).toMatchObject({ kind: 'rejected' });
    expect(calls).toEqual([]);
  });

  it('is rejected when the database refuses what it contains', async () => {
    failure = Object.assign(new Error('invalid byte sequence'), { code: '22021' });
    expect(await take('p_1', REGISTERED)).toMatchObject({ kind: 'rejected' });
  });

  it('is retried while the database is down', async () => {
    failure = Object.assign(new Error('Connection terminated unexpectedly'), { code: '08006' });
    await expect(take('p_1', REGISTERED)).rejects.toBe(failure);
  });
});
