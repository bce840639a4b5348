import type { Deployment, Hook, RunRequest, SourceId, UserId } from '#contracts';

/** A source at one moment; what the hooks of a change are decided by. */
export interface DeployedState {
  source_id: SourceId;
  owner_id: UserId;
  active: boolean;
  version: number;
  deployment: Deployment;
}

/**
 * The hooks that a change calls for and the component has, in order, as runs.
 *
 *   created ─► deploy, activate                 changed while active ─► deactivate (as it was), activate (as it is)
 *   switched off ─► deactivate (as it was)      switched on ─► activate (as it is)
 *   deleted ─► deactivate (as it was), even of a component without it: behind the last run it clears away what the source kept
 */
export function hookRuns(before: DeployedState | undefined, after: DeployedState | undefined): RunRequest[] {
  const version = after ? after.version : 'deleted';
  return dueHooks(before, after)
    .filter(([method, { deployment }]) => !after || (deployment.hooks?.includes(method) ?? true))
    .map(([method, state]) => ({
      // one change calls for a hook once, however often it's told
      run_id: `${state.source_id}.${version}.${method}`,
      owner_id: state.owner_id,
      source_id: state.source_id,
      trigger: 'hook',
      due_at_ms: Date.now(),
      hook: { method, version: state.version, deployment: state.deployment, final: !after },
    }));
}

/** Each with the source as it runs it. */
function dueHooks(before: DeployedState | undefined, after: DeployedState | undefined): [Hook, DeployedState][] {
  const [was, is] = [before?.active ? before : undefined, after?.active ? after : undefined];
  const on: [Hook, DeployedState][] = is ? [['activate', is]] : [];
  const off: [Hook, DeployedState][] = was ? [['deactivate', was]] : [];
  if (is && !before) return [['deploy', is], ...on];
  return was && is && sameDeployment(was.deployment, is.deployment) ? [] : [...off, ...on];
}

/** The name may change without the hooks' notice. */
const sameDeployment = (a: Deployment, b: Deployment): boolean => fingerprint(a) === fingerprint(b);

const fingerprint = ({ code_hash, configured_props, schedules, endpoint_key }: Deployment): string =>
  JSON.stringify([code_hash, sorted(configured_props), sorted(schedules), endpoint_key]);

const sorted = (object: object): unknown[] => Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1));
