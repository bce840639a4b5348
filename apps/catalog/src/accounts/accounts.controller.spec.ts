import { expect, it } from '@jest/globals';
import type { EmitterState, UserId } from '#contracts';
import type { Database } from '#database';
import type { Messages } from '#messaging';
import type { ComponentsRepository } from '../components/components.repository.js';
import type { SourcesRepository } from '../sources/sources.repository.js';
import type { WorkflowsRepository } from '../workflows/workflows.repository.js';
import { AccountsController } from './accounts.controller.js';

const OWNER = 'u_000000000000000001';

it('the workflows of an account are suspended and removed in parts that are announced one after the other', async () => {
  let left = 0;
  const next = (limit: number) => {
    const states = Array.from({ length: Math.min(left, limit) }, (_, n) => ({ emitter_id: `p_${n}` }) as EmitterState);
    left -= states.length;
    return Promise.resolve(states);
  };
  let [announcing, most] = [0, 0];
  const announce = async () => {
    most = Math.max(most, ++announcing);
    await new Promise(setImmediate);
    announcing--;
    return true;
  };
  const controller = new AccountsController(
    { transaction: (work: () => unknown) => work() } as unknown as Database,
    { suspend: async () => [], forgetSuspension: async () => {} } as unknown as SourcesRepository,
    {
      suspend: (_: UserId, __: boolean, limit: number) => next(limit),
      removeNext: (_: UserId, limit: number) => next(limit),
    } as unknown as WorkflowsRepository,
    { removeAll: async () => 3 } as unknown as ComponentsRepository,
    { announce } as unknown as Messages,
  );
  const suspend = () => controller.suspend({ owner_id: OWNER, suspended: true });
  left = 120;
  expect([await suspend(), await suspend(), await suspend(), await suspend()]).toEqual(
    [50, 50, 20, 0].map((workflows) => ({ sources: 0, workflows, more: workflows > 0 })),
  );
  left = 120;
  expect(await controller.remove({ owner_id: OWNER })).toEqual({ components: 3, workflows: 120 });
  expect(most).toBe(50);
});
