import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ScheduleModule } from '@nestjs/schedule';
import { Test, type TestingModule } from '@nestjs/testing';
import type { Log } from '#observability';
import { HourlyHousekeeping } from './hourly-housekeeping.js';

const HOUR_MS = 3_600_000;
const deleted: string[] = [];
const logged: unknown[] = [];
let deletion: () => Promise<void>;

class Housekeeping extends HourlyHousekeeping {
  constructor() {
    super({ warn: (...line: unknown[]) => void logged.push(line) } as unknown as Log);
  }

  protected deletions(): (() => Promise<unknown>)[] {
    return [() => deletion(), async () => deleted.push('others')];
  }
}

describe('housekeeping', () => {
  let app: TestingModule;
  beforeEach(async () => {
    jest.useFakeTimers();
    deleted.length = logged.length = 0;
    deletion = async () => void deleted.push('some');
    app = await Test.createTestingModule({ imports: [ScheduleModule.forRoot()], providers: [Housekeeping] }).compile();
  });
  afterEach(async () => {
    await app.close();
    jest.useRealTimers();
  });

  it('deletes at the start, and once an hour', async () => {
    await app.init();
    await jest.advanceTimersByTimeAsync(0);
    expect(deleted).toEqual(['some', 'others']);
    await jest.advanceTimersByTimeAsync(HOUR_MS - 1);
    expect(deleted).toHaveLength(2);
    await jest.advanceTimersByTimeAsync(1);
    expect(deleted).toHaveLength(4);
  });

  it('logs a deletion that fails, continues with the others, and repeats it', async () => {
    deletion = async () => {
      throw new Error('refused');
    };
    await app.init();
    await jest.advanceTimersByTimeAsync(0);
    expect({ deleted, logged }).toEqual({ deleted: ['others'], logged: [[{ err: new Error('refused') }, 'housekeeping.failed']] });
    deletion = async () => void deleted.push('some');
    await jest.advanceTimersByTimeAsync(HOUR_MS);
    expect(deleted).toEqual(['others', 'some', 'others']);
  });

  it('deletes nothing more, and logs nothing, when the service stops', async () => {
    const { promise, reject } = Promise.withResolvers<void>();
    deletion = () => promise;
    await app.init();
    await app.close();
    reject(new Error('the pool is closed'));
    await jest.advanceTimersByTimeAsync(HOUR_MS);
    expect({ deleted, logged }).toEqual({ deleted: [], logged: [] });
  });
});
