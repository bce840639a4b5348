import { expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { ComponentsInMemory, describedAs } from '../components/components-in-memory-for-tests.js';
import { SourcesInMemory } from '../sources/sources-in-memory-for-tests.js';
import { SourcesRepository } from '../sources/sources.repository.js';
import type { FindEmitters } from '#contracts';
import type { LogRecord } from '#messaging';
import { WorkflowsProgress } from '../workflows/workflows-progress.js';
import { WorkflowsRepository } from '../workflows/workflows.repository.js';
import { EmittersController } from './emitters.controller.js';

const OWNER = 'u_000000000000000001';
const WORKFLOW = { emitter_id: 'p_1', kind: 'workflow' };

it('finds emitters of both kinds by their ids, and sources by the keys of their endpoints and by their account', async () => {
  const components = new ComponentsInMemory();
  const code = {
    code: '',
    hash: 'h',
    description: describedAs({ configurable_props: [{ name: 'http', type: '$.interface.http' }] }),
    bundle: null,
  };
  await components.add(undefined, { id: 'sc_1', owner_id: OWNER, code, component_url: null });
  const sources = new SourcesInMemory(components);
  const change = {
    component_id: 'sc_1' as const,
    name: 'a',
    slug: 'a',
    configured_props: {},
    schedules: {},
    active: true,
    external_id: null,
  };
  await sources.create(OWNER, 'dc_1', { ...change, endpoint_key: 'secret' });
  const registered = ['p_1'];
  const states = async (ids: string[]) => registered.filter((id) => ids.includes(id)).map((emitter_id) => ({ ...WORKFLOW, emitter_id }));
  let waits = 0;
  const reachEnd = async () => {
    waits++;
    registered.push('p_2');
  };
  const module = await Test.createTestingModule({
    controllers: [EmittersController],
    providers: [
      { provide: SourcesRepository, useValue: sources },
      { provide: WorkflowsRepository, useValue: { states } },
      { provide: WorkflowsProgress, useValue: { reachEnd } },
    ],
  }).compile();
  const controller = module.get(EmittersController);
  const find = (query: FindEmitters) => controller.find(query, { header: () => undefined } as unknown as LogRecord);

  expect(await find({ ids: ['p_1', 'dc_1', 'dc_9'] })).toEqual([expect.objectContaining({ emitter_id: 'dc_1' }), WORKFLOW]);
  expect(await find({ ids: [] })).toEqual([]);
  expect(await find({ ids: ['p_1', 'dc_1', 'dc_9'], up_to_date: true })).toHaveLength(2);
  expect(await find({ ids: ['p_1', 'p_2'] })).toEqual([WORKFLOW]);
  expect(waits).toBe(0);
  // it is being registered
  expect(await find({ ids: ['p_1', 'p_2'], up_to_date: true })).toEqual([WORKFLOW, { ...WORKFLOW, emitter_id: 'p_2' }]);
  expect(waits).toBe(1);
  const [bare] = await find({ ids: ['dc_1'], without_deployments: true });
  expect(bare).toMatchObject({ emitter_id: 'dc_1', kind: 'source' });
  expect(bare).not.toHaveProperty('deployment');
  expect(await controller.findEndpoints({ endpoint_keys: ['guessed', 'secret'] })).toMatchObject([{ emitter_id: 'dc_1' }]);
  expect(await controller.findNew({ owner_id: OWNER })).toEqual(['dc_1']);
  expect(await controller.findNew({ owner_id: 'u_000000000000000002' })).toEqual([]);
});
