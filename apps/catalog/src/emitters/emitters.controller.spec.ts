import { expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { ComponentsInMemory, describedAs } from '../components/components-in-memory-for-tests.js';
import { SourcesInMemory } from '../sources/sources-in-memory-for-tests.js';
import { SourcesRepository } from '../sources/sources.repository.js';
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
  const states = async (ids: string[]) => (ids.includes('p_1') ? [WORKFLOW] : []);
  const module = await Test.createTestingModule({
    controllers: [EmittersController],
    providers: [
      { provide: SourcesRepository, useValue: sources },
      { provide: WorkflowsRepository, useValue: { states } },
    ],
  }).compile();
  const controller = module.get(EmittersController);

  expect(await controller.find({ ids: ['p_1', 'dc_1', 'dc_9'] })).toEqual([expect.objectContaining({ emitter_id: 'dc_1' }), WORKFLOW]);
  expect(await controller.find({ ids: [] })).toEqual([]);
  const [bare] = await controller.find({ ids: ['dc_1'], without_deployments: true });
  expect(bare).toMatchObject({ emitter_id: 'dc_1', kind: 'source' });
  expect(bare).not.toHaveProperty('deployment');
  expect(await controller.findEndpoints({ endpoint_keys: ['guessed', 'secret'] })).toMatchObject([{ emitter_id: 'dc_1' }]);
  expect(await controller.findNew({ owner_id: OWNER })).toEqual(['dc_1']);
  expect(await controller.findNew({ owner_id: 'u_000000000000000002' })).toEqual([]);
});
