import type { FromGuest, GuestError, GuestLimits, RunMessage } from '../wire/messages.js';
import { componentContext } from './component-context.js';
import type { OptionsCall } from '../sandbox.js';
import { guestError } from './guest-error.js';
import type { Component, ComponentLoader } from './load-component.js';
import { putOptions } from './prop-options.js';
import { currentRun, RunState } from './run-state.js';
import { readHttpBody } from '../wire/http-body.js';

// taken before any component could replace them
const { Promise, setImmediate: soon } = globalThis;
const race = Promise.race.bind(Promise);
const { now } = Date;
const { parse } = JSON;
const { assign } = Object;
const bytesOf = Buffer.from.bind(Buffer);
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
  let uncaught: unknown;
  try {
    await currentRun.run(run, async () => {
      const failed = new Promise<never>((_, reject) => (run.fail = reject));
      const component = await race([loader.load(job, job.variables), failed]);
      void confirmSoon(run);
      await race([call(component, run), failed]);
      // rejections that nobody awaits are reported one turn later
      await race([nextTurn(), failed]);
    });
  } catch (thrown) {
    uncaught = thrown;
    error = guestError(thrown);
  }
  if (run.logsLeftOut > 0) run.put(['log', 'warn', now(), `${run.logsLeftOut} more log lines of this run were omitted`, null], 0);
  send({ t: 'done', id: job.id, out: run.end(), error, refused: refusedCalls(run, uncaught) });
}

/** The errors of refused calls that the component has caught; undefined if there are none. */
function refusedCalls({ refused, refusedLeftOut }: RunState, uncaught: unknown): GuestError[] | undefined {
  if (refused.length === 0) return undefined;
  const caught = refused.filter((error) => error !== uncaught).map(guestError);
  return refusedLeftOut === 0 ? caught : [...caught, guestError(`${refusedLeftOut} more calls were refused`)];
}

/**
 * A run that ends in this turn of the event loop needs no frame to confirm that it has begun: it has no response from another system yet. Two turns, because
 * the end of a run takes one.
 */
async function confirmSoon(run: RunState): Promise<void> {
  await nextTurn();
  await nextTurn();
  run.confirm();
}

async function call(component: Component, run: RunState): Promise<void> {
  const self = componentContext(component, run);
  const { method, event } = run.job;
  if (method === 'options') return putOptions(component, self, run, parse(event ?? '{}') as OptionsCall);
  const callee = method === 'run' ? component.run : (component.hooks as Component | undefined)?.[method];
  const value = eventOf(run.job);
  run.received = value;
  if (typeof callee === 'function') await callee.call(self, value);
  else if (method === 'run') (self.$emit as (event: unknown) => void)(value);
}

/** A large body of a request is parsed here, because it could delay the other accounts in the parent. */
function eventOf({ event, httpBody }: RunMessage): unknown {
  const value: unknown = event === undefined ? undefined : parse(event);
  if (httpBody === undefined) return value;
  const { headers } = value as { headers: Record<string, string> };
  return assign(value as object, readHttpBody(headers['content-type'] ?? '', bytesOf(httpBody, 'base64')));
}
