import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { findCredentials, type PropDefinition, type UserId } from '#contracts';
import { Messages } from '#messaging';
import { AccountPace } from '#fairness';
import { SecretBox } from '#secrets';
import { FakeMessages } from '#testing';
import { DeployedSources } from '../deployments/deployed-sources.js';
import type { DeploymentRow } from '../deployments/deployment.entity.js';
import { RuntimeConfig } from '../runtime.config.js';
import { type RunJob, type RunOutcome, Sandbox } from '../sandbox/sandbox.js';
import { CodeCache } from './code-cache.js';
import { PropOptionsController } from './prop-options.controller.js';

const OUTCOME: RunOutcome = { status: 'ok', error: null, emits: [], logs: [], db: {}, wallMs: 1, cpuMs: 1, mainMs: 1, responded: false };

describe('the options of a prop', () => {
  let run: (job: RunJob) => Promise<Partial<RunOutcome>>;
  let jobs: RunJob[];
  let turns: [account: string, units: number][];
  let spent: [work: string, account: string, units: number][];
  let messages: FakeMessages;
  let source: Partial<DeploymentRow>;
  let controller: PropOptionsController;

  beforeEach(async () => {
    run = async () => ({ emits: [{ event: '{"options":[1],"context":null}' }] });
    jobs = [];
    turns = [];
    spent = [];
    const pace = {
      runTurn: async (account: string, units: number) => void turns.push([account, units]),
      spendOn: (work: string, account: string, units: number) => void spent.push([work, account, units]),
    };
    messages = new FakeMessages();
    source = { source_id: 'dc_1', owner_id: 'u_1', code_hash: 'h', configured_props: {}, schedules: {}, endpoint_key: null };
    const configurable_props: PropDefinition[] = [
      { name: 'chat', type: 'app' },
      { name: 'channel', type: 'string', remoteOptions: true },
      { name: 'timer', type: '$.interface.timer', default: { intervalSeconds: 5 } },
    ];
    const sandbox = {
      run: async (job: RunJob) => {
        jobs.push(job);
        return { ...OUTCOME, ...(await run(job)) };
      },
    };
    const module = await Test.createTestingModule({
      controllers: [PropOptionsController],
      providers: [
        { provide: DeployedSources, useValue: { find: async () => source } },
        { provide: CodeCache, useValue: { get: async () => ({ component: {}, description: { configurable_props } }) } },
        { provide: SecretBox, useValue: new SecretBox([Buffer.alloc(32, 1)]) },
        { provide: Sandbox, useValue: sandbox },
        { provide: RuntimeConfig, useValue: { endpointsUrl: 'http://in.test' } },
        { provide: Messages, useValue: messages },
        { provide: AccountPace, useValue: pace },
      ],
    }).compile();
    controller = module.get(PropOptionsController);
  });

  const options = (owner_id: UserId, configured_props = {}) =>
    controller.ofComponent({ owner_id, code_hash: 'h', prop: 'channel', configured_props });

  it('are the ones that options() of the component returns', async () => {
    expect(await options('u_1', { chat: { $auth: { key: 'k' } } })).toEqual({ options: [1], context: null });
    expect(jobs[0]).toMatchObject({ accountId: 'u_1', method: 'options', props: { chat: { $auth: { key: 'k' } } } });
  });

  it.each(['null', '1', '[]', '{}', '{"options":{},"context":null}', '{"options":[],"context":[]}', '{"options":[]}'])(
    'are refused if a process that the code controls emits %s instead',
    async (event) => {
      run = async () => ({ emits: [{ event }] });
      await expect(options('u_1')).rejects.toMatchObject({ code: 'unprocessable' });
    },
  );

  it('are refused without being parsed if there are more than 100 000 values', async () => {
    const event = `{"options":[${'[],'.repeat(100_000)}0],"context":null}`;
    run = async () => ({ emits: [{ event }] });
    const parse = jest.spyOn(JSON, 'parse');
    await expect(options('u_1')).rejects.toMatchObject({ code: 'unprocessable', message: expect.stringContaining('too many') });
    expect(parse).not.toHaveBeenCalledWith(event);
    parse.mockRestore();
  });

  it('are determined in the turn of the account, which is charged for them like for a run', async () => {
    run = async () => ({ emits: [{ event: '{"options":[],"context":null}' }], mainMs: 900 });
    await options('u_1');
    run = async () => ({ status: 'killed', mainMs: 900 });
    await expect(options('u_1')).rejects.toMatchObject({ code: 'unprocessable' });
    expect(turns).toEqual([
      ['u_1', 1],
      ['u_1', 1],
    ]);
    expect(spent.map(([work, account]) => [work, account])).toEqual([
      ['run', 'u_1'],
      ['run', 'u_1'],
    ]);
    expect(spent[0]![2]).toBeGreaterThanOrEqual(900);
    expect(spent[1]![2]).toBeGreaterThanOrEqual(920);
  });

  it('are determined for at most eight callers of an account at a time', async () => {
    const { promise: ended, resolve: end } = Promise.withResolvers<Partial<RunOutcome>>();
    run = () => ended;
    const running = Array.from({ length: 8 }, () => options('u_1'));
    await expect(options('u_1')).rejects.toMatchObject({ code: 'too_many_requests' });
    const other = options('u_2');
    end({ emits: [{ event: '{"options":[],"context":null}' }] });
    await Promise.all([...running, other]);
    expect((await options('u_1')).options).toEqual([]);
  });

  it.each<[string, unknown, object]>([
    ['its schedule', undefined, { intervalSeconds: 60, interval_seconds: 60, cron: null }],
    ['the interval of a request', { intervalSeconds: 7 }, { intervalSeconds: 7, interval_seconds: 7, cron: null }],
    ['a value that a response shows', { cron: null, interval_seconds: 7 }, { intervalSeconds: 7, interval_seconds: 7, cron: null }],
    [
      'the cron expression of a request',
      { cron: '0 9 * * *', timezone: 'Europe/Berlin' },
      { intervalSeconds: null, interval_seconds: null, cron: '0 9 * * *', timezone: 'Europe/Berlin' },
    ],
    ['its default instead of null', null, { intervalSeconds: 5, interval_seconds: 5, cron: null }],
    ['a value that is not a schedule', { cron: 5 }, { cron: 5 }],
  ])('can depend on a timer of a source, with the members that it has in a run: %s', async (_, timer, expected) => {
    source = {
      ...source,
      configured_props: { timer: { intervalSeconds: 60 } },
      schedules: { timer: { interval_seconds: 60, cron: null } },
    };
    const configured_props = timer === undefined ? {} : { timer };
    await controller.ofSource({ owner_id: 'u_1', source_id: 'dc_1', prop: 'channel', configured_props });
    expect(jobs[0]!.props).toEqual({ timer: expected });
  });

  it('can depend on the default of a timer of a component', async () => {
    await options('u_1');
    expect(jobs[0]!.props).toEqual({ timer: { intervalSeconds: 5, interval_seconds: 5, cron: null } });
  });

  it('can depend on the endpoint of a source', async () => {
    const endpoint = async (endpoint_key: string | null) => {
      source = { ...source, endpoint_key };
      await controller.ofSource({ owner_id: 'u_1', source_id: 'dc_1', prop: 'channel' });
      return jobs.at(-1)!.endpoint;
    };
    expect(await endpoint('abc')).toBe('http://in.test/abc');
    expect(await endpoint(null)).toBeNull();
  });

  it.each([{ channel: '••••••••' }, { chat: { $auth: { key: '••••••••' } } }])(
    'cannot be determined with masked values: %j',
    async (props) => {
      await expect(options('u_1', props)).rejects.toMatchObject({
        code: 'invalid',
        message: expect.stringContaining('is masked: send its value'),
      });
      expect(jobs).toEqual([]);
    },
  );

  it('cannot be determined with a connection of another account', async () => {
    messages.replyTo(findCredentials, ({ owner_id, ids }) =>
      owner_id === 'u_1' ? [] : ids.map((id) => ({ id, app: 'chat', credentials: '' })),
    );
    await expect(options('u_1', { chat: { authProvisionId: 'apn_1' } })).rejects.toMatchObject({ code: 'invalid' });
    expect(jobs).toEqual([]);
  });
});
