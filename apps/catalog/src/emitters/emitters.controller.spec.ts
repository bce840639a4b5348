import { expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { ComponentsInMemory, describedAs } from '../components/components-in-memory-for-tests.js';
import { SourcesInMemory } from '../sources/sources-in-memory-for-tests.js';
import { SourceStatesRepository } from '../sources/source-states.repository.js';
import type { FindEmitters } from '#contracts';
import type { LogRecord } from '#messaging';
import { WorkflowsProgress } from '../workflows/workflows-progress.js';
import { WorkflowsRepository } from '../workflows/workflows.repository.js';
import { EmittersController } from './emitters.controller.js';

const OWNER = 'u_000000000000000001';
const WORKFLOW = { emitter_id: 'p_1', kind: 'workflow', deleted: false };
const REMOVED = { ...WORKFLOW, emitter_id: 'p_3', deleted: true };

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
  await sources.create(OWNER, 'dc_2', { ...change, endpoint_key: null });
  await sources.delete(OWNER, 'dc_2');
  const registered = new Map([
    ['p_1', WORKFLOW],
    ['p_3', REMOVED],
  ]);
  const states = async (ids: string[]) => [...registered].filter(([id]) => ids.includes(id)).map(([, state]) => state);
  let waits = 0;
  const reachEnd = async () => {
    waits++;
    registered.set('p_2', { ...WORKFLOW, emitter_id: 'p_2' }).set('p_3', { ...REMOVED, deleted: false });
  };
  const module = await Test.createTestingModule({
    controllers: [EmittersController],
    providers: [
      { provide: SourceStatesRepository, useValue: sources },
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
  expect(await find({ ids: ['p_3'] })).toEqual([REMOVED]);
  expect(await find({ ids: ['dc_1', 'dc_2'], without_deployments: true })).toMatchObject([
    { emitter_id: 'dc_1', deleted: false },
    { emitter_id: 'dc_2', deleted: true },
  ]);
  expect(waits).toBe(0);
  // one is being registered, and one again
  expect(await find({ ids: ['p_1', 'p_2', 'p_3'], up_to_date: true })).toEqual([
    WORKFLOW,
    { ...REMOVED, deleted: false },
    { ...WORKFLOW, emitter_id: 'p_2' },
  ]);
  expect(waits).toBe(1);
  const [bare] = await find({ ids: ['dc_1'], without_deployments: true });
  expect(bare).toMatchObject({ emitter_id: 'dc_1', kind: 'source' });
  expect(bare).not.toHaveProperty('deployment');
  expect(await controller.findEndpoints({ endpoint_keys: ['guessed', 'secret'] })).toMatchObject([{ emitter_id: 'dc_1' }]);
  expect(await controller.findNew({ owner_id: OWNER })).toEqual(['dc_1']);
  expect(await controller.findNew({ owner_id: 'u_000000000000000002' })).toEqual([]);
});
