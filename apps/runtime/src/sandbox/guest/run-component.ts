import type { FromGuest, GuestLimits, RunMessage } from '../wire/messages.js';
import { componentContext } from './component-context.js';
import type { OptionsCall } from '../sandbox.js';
import { guestError } from './guest-error.js';
import type { Component, ComponentLoader } from './load-component.js';
import { putOptions } from './prop-options.js';
import { currentRun, RunState } from './run-state.js';

// taken before any component could replace it
const { setImmediate: soon } = globalThis;
const { now } = Date;
const nextTurn = () => new Promise<void>((resolve) => soon(resolve));

/** One run from its message to its `done`. Never rejects. */
export async function runComponent(
  job: RunMessage,
  loader: ComponentLoader,
  limits: GuestLimits,
  send: (message: FromGuest) => void,
): Promise<void> {
  const run = new RunState(job, limits, send);
  let error = null;
  try {
    await currentRun.run(run, async () => {
      const failed = new Promise<never>((_, reject) => (run.fail = reject));
      const component = await Promise.race([loader.load(job.hash, job.code, job.packages), failed]);
      await Promise.race([call(component, run), failed]);
      // rejections that nobody awaits are reported one turn later
      await Promise.race([nextTurn(), failed]);
    });
    if (run.refused) error = guestError(run.refused);
  } catch (thrown) {
    error = guestError(thrown);
  }
  if (run.logsLeftOut > 0) run.put(['log', 'warn', now(), `${run.logsLeftOut} more log lines of this run were omitted`, null], 0);
  run.done = true;
  send({ t: 'done', id: job.id, out: run.takeRest(), error });
}

async function call(component: Component, run: RunState): Promise<void> {
  const self = componentContext(component, run);
  const { method, event } = run.job;
  if (method === 'options') return putOptions(component, self, run, JSON.parse(event ?? '{}') as OptionsCall);
  const callee = method === 'run' ? component.run : (component.hooks as Component | undefined)?.[method];
  const value: unknown = event === undefined ? undefined : JSON.parse(event);
  if (typeof callee === 'function') await callee.call(self, value);
  else if (method === 'run') (self.$emit as (event: unknown) => void)(value);
}
