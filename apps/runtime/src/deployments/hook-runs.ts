import type { Deployment, Hook, RunRequested, SourceId, UserId } from '#contracts';

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
export function hookRuns(before: DeployedState | undefined, after: DeployedState | undefined): RunRequested[] {
  const version = (after ?? before)?.version ?? 0;
  const run = (method: Hook, state: DeployedState): RunRequested[] => {
    if (after && state.deployment.hooks?.includes(method) === false) return [];
    return [
      {
        // one change calls for a hook once, however often it's told
        run_id: `${state.source_id}.${after ? version : 'deleted'}.${method}`,
        owner_id: state.owner_id,
        source_id: state.source_id,
        trigger: 'hook',
        due_at_ms: Date.now(),
        hook: { method, version: state.version, deployment: state.deployment, final: !after },
      },
    ];
  };
  const wasActive = before?.active === true;
  const isActive = after?.active === true;
  if (!before) return isActive ? [...run('deploy', after), ...run('activate', after)] : [];
  if (wasActive && !isActive) return run('deactivate', before);
  if (!wasActive && isActive) return run('activate', after);
  return wasActive && isActive && !sameDeployment(before.deployment, after.deployment)
    ? [...run('deactivate', before), ...run('activate', after)]
    : [];
}

/** The name may change without the hooks' notice. */
const sameDeployment = (a: Deployment, b: Deployment): boolean => fingerprint(a) === fingerprint(b);

const fingerprint = ({ code_hash, configured_props, schedules, endpoint_key }: Deployment): string =>
  JSON.stringify([code_hash, sorted(configured_props), sorted(schedules), endpoint_key]);

const sorted = (object: object): unknown[] => Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1));
