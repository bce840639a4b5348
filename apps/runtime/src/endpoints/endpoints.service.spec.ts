import { beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { type EmitterState, executeRun, findEndpoint, type RunRequest, Unavailable } from '#contracts';
import { EmitterDirectory } from '#emitters';
import { Messages } from '#messaging';
import { FakeMessages } from '#testing';
import { CodeCache } from '../components/code-cache.js';
import type { DeploymentRow } from '../deployments/deployment.entity.js';
import { DeploymentsRepository } from '../deployments/deployments.repository.js';
import { RunQueue } from '../runs/run-queue.js';
import { RunLanes } from '../runs/run-lanes.js';
import { RunsService, type RunWatch } from '../runs/runs.service.js';
import type { HttpReply, RunStatus } from '../sandbox/sandbox.js';
import { EndpointsService } from './endpoints.service.js';
import type { HttpEvent } from './http-event.js';

const KEY = 'abcdefghijklmnop';
const DEPLOYMENT = { source_id: 'dc_1', owner_id: 'u_1', active: true, code_hash: 'h' } as unknown as DeploymentRow;
const EVENT = { method: 'POST', path: '/', body: { n: 1 } } as unknown as HttpEvent;
const REPLY: HttpReply = { status: 201, headers: {}, body: Buffer.from('made') };

describe('the endpoints of sources', () => {
  let deployed: Map<string, DeploymentRow>;
  let catalog: Map<string, DeploymentRow>;
  let customResponse: boolean;
  let isFull: boolean;
  let reply: HttpReply | undefined;
  let status: RunStatus | null;
  let executed: RunRequest[];
  let messages: FakeMessages;
  let service: EndpointsService;

  beforeEach(async () => {
    deployed = new Map();
    catalog = new Map();
    customResponse = false;
    isFull = false;
    reply = undefined;
    status = 'ok';
    executed = [];
    messages = new FakeMessages().replyTo(findEndpoint, ({ endpoint_key }) =>
      catalog.has(endpoint_key) ? ({ emitter_id: endpoint_key } as EmitterState) : null,
    );
    const learn = async ({ emitter_id }: EmitterState) => void deployed.set(emitter_id, catalog.get(emitter_id)!);
    const execute = async (run: RunRequest, { onRespond }: RunWatch) => {
      executed.push(run);
      if (reply) onRespond?.(reply);
      return status;
    };
    const code = async () => ({ description: { configurable_props: [{ name: 'http', type: '$.interface.http', customResponse }] } });
    const module = await Test.createTestingModule({
      providers: [
        EndpointsService,
        { provide: DeploymentsRepository, useValue: { findByEndpoint: async (key: string) => deployed.get(key) } },
        { provide: EmitterDirectory, useValue: { learn } },
        { provide: CodeCache, useValue: { get: code } },
        { provide: RunsService, useValue: { execute } },
        { provide: RunLanes, useValue: { executeHere: (_run: RunRequest, run: () => Promise<RunStatus | null>) => run() } },
        { provide: RunQueue, useValue: { isFull: async () => isFull } },
        { provide: Messages, useValue: messages },
      ],
    }).compile();
    service = module.get(EndpointsService);
  });

  it('are not looked up in the catalog while sixteen unknown ones are', async () => {
    const { promise: replied, resolve: reply } = Promise.withResolvers<null>();
    messages.replyTo(findEndpoint, () => replied as never);
    deployed.set(KEY, DEPLOYMENT);
    const unknown = Array.from({ length: 16 }, (_, n) => service.find(`unknownendpoint${n}`));
    await expect(service.find('onemoreendpoint1')).rejects.toMatchObject({ code: 'too_many_requests' });
    expect(await service.find(KEY)).toBe(DEPLOYMENT);
    reply(null);
    expect(await Promise.all(unknown)).toEqual(unknown.map(() => undefined));
    expect(await service.find('onemoreendpoint1')).toBeUndefined();
  });

  it('are found by their key', async () => {
    deployed.set(KEY, DEPLOYMENT);
    expect(await service.find(KEY)).toBe(DEPLOYMENT);
    expect(messages.requests).toEqual([]);
  });

  it('are found in the catalog if their first request overtakes the fact of their creation', async () => {
    catalog.set(KEY, DEPLOYMENT);
    expect(await service.find(KEY)).toBe(DEPLOYMENT);
    expect(await service.find(KEY)).toBe(DEPLOYMENT);
    expect(messages.requests).toHaveLength(1);
  });

  it('do not ask the catalog again for a key that it does not know, nor for a malformed key', async () => {
    for (const key of [KEY, KEY, '', 'short', 'x'.repeat(65), '../../etc/passwd']) expect(await service.find(key)).toBeUndefined();
    expect(messages.requests).toHaveLength(1);
  });

  it('are not found for a source that is not active', async () => {
    deployed.set(KEY, { ...DEPLOYMENT, active: false });
    expect(await service.find(KEY)).toBeUndefined();
  });

  it('fail when the catalog is down, and query it again', async () => {
    messages.replyTo(findEndpoint, () => {
      throw new Unavailable('away');
    });
    for (let n = 0; n < 2; n++) await expect(service.find(KEY)).rejects.toMatchObject({ code: 'unavailable' });
    expect(messages.requests).toHaveLength(2);
  });

  it('queue a run of each request, with the owner’s key', async () => {
    expect(await service.accept(DEPLOYMENT, EVENT)).toBe('queued');
    expect(messages.published).toEqual([
      {
        name: executeRun.name,
        key: 'u_1',
        payload: expect.objectContaining({ source_id: 'dc_1', trigger: 'http', event: JSON.stringify(EVENT) }),
      },
    ]);
    expect(executed).toEqual([]);
  });

  it('queue nothing when the account has reached its limit of waiting runs', async () => {
    isFull = true;
    expect(await service.accept(DEPLOYMENT, EVENT)).toBe('busy');
    expect(messages.published).toEqual([]);
  });

  it.each<[string, HttpReply | undefined, RunStatus | null, unknown]>([
    ['with the component’s own reply', REPLY, 'ok', REPLY],
    ['with the reply that came before an error', REPLY, 'threw', REPLY],
    ['as not responded to when the component does not reply', undefined, 'ok', 'no response'],
    ['as not responded to when the component throws', undefined, 'threw', 'no response'],
    ['as stopped after a time-out', undefined, 'timeout', 'stopped'],
    ['as stopped when the process was killed', undefined, 'killed', 'stopped'],
    ['as stopped without memory', undefined, 'memory', 'stopped'],
    ['as not run over the quota', undefined, null, 'not run'],
  ])('run a component that responds itself at once, and end %s', async (_, its, end, expected) => {
    customResponse = true;
    reply = its;
    status = end;
    expect(await service.accept(DEPLOYMENT, EVENT)).toEqual(expected);
    expect({ executed: executed.length, published: messages.published }).toEqual({ executed: 1, published: [] });
  });
});
