import { isDeepStrictEqual } from 'node:util';
import type { Deployment, Hook, RunRequest, SourceId, UserId } from '#contracts';

/** The state of a source that determines the hooks of a change. */
export interface DeployedState {
  source_id: SourceId;
  owner_id: UserId;
  active: boolean;
  /** It is inactive only because its account is suspended. */
  suspended?: boolean;
  version: number;
  deployment: Deployment;
}

/** Returns the decrypted props. */
type PropsOf = (state: DeployedState) => Record<string, unknown>;

/**
 * The runs of hooks for a change, in order, without hooks that the component does not define.
 *
 *   created ─► deploy, activate                 changed while active ─► deactivate (as it was), activate (as it is)
 *   switched off ─► deactivate (as it was)      switched on ─► activate (as it is)
 *   suspended with its account, or continued ─► none
 *   deleted ─► deactivate (as it was), even if the component does not define it: after the last run, it deletes the source's state
 */
export function hookRuns(before: DeployedState | undefined, after: DeployedState | undefined, propsOf: PropsOf): RunRequest[] {
  // a source can be deleted again, after a restore of the catalog
  const change = after ? after.version : `${before?.version}.deleted`;
  return dueHooks(before, after, propsOf)
    .filter(([method, { deployment }]) => !after || (deployment.hooks?.includes(method) ?? true))
    .map(([method, state]) => ({
      // a hook runs once per change, even if the fact arrives twice
      run_id: `${state.source_id}.${change}.${method}`,
      owner_id: state.owner_id,
      source_id: state.source_id,
      trigger: 'hook',
      due_at_ms: Date.now(),
      hook: { method, version: state.version, deployment: state.deployment, final: !after },
    }));
}

/** Whether what the source has run so far must not continue: it is deleted or inactive, or has other code, props, credentials or schedules. */
export const isOutdated = (before: DeployedState, after: DeployedState | undefined, propsOf: PropsOf): boolean =>
  !after?.active ||
  !isDeepStrictEqual(before.deployment.credentials ?? null, after.deployment.credentials ?? null) ||
  !sameDeployment(before, after, propsOf);

/** Each hook, with the state of the source for its run. */
function dueHooks(before: DeployedState | undefined, after: DeployedState | undefined, propsOf: PropsOf): [Hook, DeployedState][] {
  const [was, is] = [before && isOn(before) ? before : undefined, after && isOn(after) ? after : undefined];
  const on: [Hook, DeployedState][] = is ? [['activate', is]] : [];
  const off: [Hook, DeployedState][] = was ? [['deactivate', was]] : [];
  if (is && !before) return [['deploy', is], ...on];
  return was && is && sameDeployment(was, is, propsOf) ? [] : [...off, ...on];
}

/** No hook runs because of a suspension: the registrations of the source at other systems stay, so that it can continue as before. */
const isOn = ({ active, suspended }: DeployedState): boolean => active || suspended === true;

/** A change of the name alone runs no hooks. */
const sameDeployment = (a: DeployedState, b: DeployedState, propsOf: PropsOf): boolean =>
  fingerprint(a, propsOf) === fingerprint(b, propsOf);

/** Compares decrypted values: the same props are never encrypted to the same text twice. */
const fingerprint = (state: DeployedState, propsOf: PropsOf): string => {
  const { code_hash, schedules, endpoint_key } = state.deployment;
  return JSON.stringify([code_hash, sorted(propsOf(state)), sorted(schedules), endpoint_key]);
};

const sorted = (object: object): unknown[] => Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1));
