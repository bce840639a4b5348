import { describe, expect, it } from '@jest/globals';
import type { Hook } from '#contracts';
import { type DeployedState, hookRuns, isOutdated } from './hook-runs.js';

const state = (
  version: number,
  {
    active = true,
    suspended,
    code = 'a',
    props = {},
    hooks,
  }: { active?: boolean; suspended?: boolean; code?: string; props?: Record<string, unknown>; hooks?: Hook[] } = {},
): DeployedState => ({
  source_id: 'dc_1',
  owner_id: 'u_1',
  active,
  suspended,
  version,
  deployment: { code_hash: code, configured_props: props, schedules: {}, endpoint_key: null, name_slug: `n${version}`, hooks },
});
const withCredentials = (cn_1: string): DeployedState => {
  const { deployment, ...rest } = state(1);
  return { ...rest, deployment: { ...deployment, credentials: { cn_1 } } };
};
const SUSPENDED = { active: false, suspended: true };
const propsOf = ({ deployment }: DeployedState) => deployment.configured_props as Record<string, unknown>;
const hooks = (before?: DeployedState, after?: DeployedState) =>
  hookRuns(before, after, propsOf).map(({ hook }) => `${hook?.method} ${hook?.version}`);

describe('the hooks of a change', () => {
  it.each<[string, DeployedState | undefined, DeployedState | undefined, string[]]>([
    ['created', undefined, state(1), ['deploy 1', 'activate 1']],
    ['created without hooks', undefined, state(1, { hooks: [] }), []],
    ['created with one of them', undefined, state(1, { hooks: ['activate'] }), ['activate 1']],
    [
      'changed: new code, with other hooks',
      state(1, { hooks: ['deactivate'] }),
      state(2, { code: 'b', hooks: ['deploy'] }),
      ['deactivate 1'],
    ],
    ['deleted without hooks, to clear away behind the last run', state(1, { hooks: [] }), undefined, ['deactivate 1']],
    ['changed: new code', state(1), state(2, { code: 'b' }), ['deactivate 1', 'activate 2']],
    ['changed: new props', state(1), state(2, { props: { a: 1 } }), ['deactivate 1', 'activate 2']],
    ['renamed', state(1), state(2), []],
    ['switched off', state(1), state(2, { active: false }), ['deactivate 1']],
    ['switched off with new code', state(1), state(2, { active: false, code: 'b' }), ['deactivate 1']],
    ['switched on', state(1, { active: false }), state(2), ['activate 2']],
    ['changed while off', state(1, { active: false }), state(2, { active: false, code: 'b' }), []],
    ['suspended with its account', state(1), state(2, SUSPENDED), []],
    ['continued with its account', state(1, SUSPENDED), state(2), []],
    ['switched off while suspended', state(1, SUSPENDED), state(2, { active: false }), ['deactivate 1']],
    ['deleted while suspended', state(1, SUSPENDED), undefined, ['deactivate 1']],
    ['deleted', state(1), undefined, ['deactivate 1']],
    ['deleted while off', state(1, { active: false }), undefined, []],
  ])('%s', (_, before, after, expected) => expect(hooks(before, after)).toEqual(expected));

  it.each<[string, DeployedState, DeployedState | undefined, boolean]>([
    ['renamed', state(1), state(2), false],
    ['changed: new code', state(1), state(2, { code: 'b' }), true],
    ['changed: new props', state(1), state(2, { props: { a: 1 } }), true],
    ['changed: new credentials of a connection', withCredentials('old'), withCredentials('new'), true],
    ['renamed with the same credentials', withCredentials('old'), withCredentials('old'), false],
    ['switched off', state(1), state(2, { active: false }), true],
    ['switched on', state(1, { active: false }), state(2), false],
    ['suspended with its account', state(1), state(2, SUSPENDED), true],
    ['continued with its account', state(1, SUSPENDED), state(2), false],
    ['deleted', state(1), undefined, true],
  ])('make earlier runs of a source outdated, or not, that is %s', (_, before, after, expected) => {
    expect(isOutdated(before, after, propsOf)).toBe(expected);
  });

  it('are final when the source is deleted, and have an id of the change', () => {
    expect(hookRuns(state(3), undefined, propsOf)).toMatchObject([{ run_id: 'dc_1.3.deleted.deactivate', hook: { final: true } }]);
    expect(hookRuns(undefined, state(1), propsOf).map(({ run_id }) => run_id)).toEqual(['dc_1.1.deploy', 'dc_1.1.activate']);
  });

  it('run again when a source is deleted that was deleted before, and has been restored with the catalog', () => {
    const [first, second] = [3, 5].map((version) => hookRuns(state(version), undefined, propsOf)[0]?.run_id);
    expect(second).not.toBe(first);
  });
});
