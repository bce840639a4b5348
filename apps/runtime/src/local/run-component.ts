import { Invalid, type Schedule } from '#contracts';
import { httpEvent } from '../endpoints/http-event.js';
import type { PropDefinition, RunError, Sandbox } from '../sandbox/sandbox.js';
import { requestedEvent, scheduleOf, timerValue } from '../timers/next-tick.js';
import type { Checked } from './check-component.js';
import { type LocalRun, LocalSource, type LocalState } from './local-source.js';
import { propArguments } from './prop-arguments.js';

export interface LocalRunOptions {
  /** `name=value` */
  props: string[];
  /** Events as JSON; several are several runs */
  events: string[];
  /** The body of a request to the endpoint, instead of events */
  request?: string;
  /** `name: value` */
  headers: string[];
  hooks: boolean;
  endpoint: string;
  state: LocalState;
}

const LATE_MS = 500;
const EACH_MINUTE: Schedule = { interval_seconds: 60, cron: null };

/** The error of code that continued after its run. A deployed source reports it on `$errors`. */
export class LateError extends Error {
  constructor({ name, message, stack }: RunError) {
    super(`after the run: ${stack || `${name}: ${message}`}`);
  }
}

/**
 * Runs a component as a new source would be run: `deploy` and `activate`, a run for each event, and `deactivate`.
 * @returns the runs, as they end
 * @throws Invalid if the options do not fit the component
 * @throws LateError after the runs
 */
export async function* runComponent(
  sandbox: Sandbox,
  { component, description }: Extract<Checked, { ok: true }>,
  options: LocalRunOptions,
): AsyncGenerator<LocalRun> {
  const values = propArguments(description.configurable_props, options.props);
  const schedules = schedulesOf(description.configurable_props, values);
  const timers = Object.entries(schedules).map(([prop, schedule]) => [prop, timerValue(schedule)] as const);
  const props = { ...values, ...Object.fromEntries(timers) };
  const events = eventsOf(Object.values(schedules)[0], options);
  const source = new LocalSource(sandbox, { component, description, props, endpoint: options.endpoint, state: options.state });
  const has = (hook: 'deploy' | 'activate' | 'deactivate') => options.hooks && description.hooks.includes(hook);
  if (has('deploy')) yield await source.run('deploy');
  if (has('activate')) yield await source.run('activate');
  for (const event of events) yield await source.run('run', event);
  if (has('deactivate')) yield await source.run('deactivate');
  // code that continues after its run, for instance because an await is missing
  await new Promise((resolve) => setTimeout(resolve, LATE_MS));
  const [late] = source.lateErrors;
  if (late) throw new LateError(late);
}

/** The schedules that a source would have, by prop. A timer without one ticks each minute. */
function schedulesOf(definitions: PropDefinition[], values: Record<string, unknown>): Record<string, Schedule> {
  const timers = definitions.filter(({ type }) => type === '$.interface.timer');
  return Object.fromEntries(
    timers.flatMap((timer) => {
      const value = values[timer.name] ?? timer.default ?? undefined;
      return value === undefined && timer.optional === true ? [] : [[timer.name, scheduleOf(value) ?? EACH_MINUTE]];
    }),
  );
}

function eventsOf(
  schedule: Schedule | undefined,
  { events, request, headers }: Pick<LocalRunOptions, 'events' | 'request' | 'headers'>,
): string[] {
  if (request !== undefined) {
    const isJson = /^\s*[{[]/.test(request);
    const all = { ...(isJson && { 'content-type': 'application/json' }), ...Object.fromEntries(headers.map(headerOf)) };
    return [JSON.stringify(httpEvent({ method: 'POST', path: '/', search: '', headers: all, body: Buffer.from(request) }))];
  }
  if (events.length > 0) return events.map(checkedJson);
  return [requestedEvent(schedule)];
}

function headerOf(line: string): [name: string, value: string] {
  const at = line.indexOf(':');
  if (at < 1) throw new Invalid(`a header is written name: value, not ${line}`);
  return [line.slice(0, at).trim().toLowerCase(), line.slice(at + 1).trim()];
}

function checkedJson(text: string): string {
  try {
    JSON.parse(text);
    return text;
  } catch (error) {
    throw new Invalid(`--event is not JSON: ${(error as Error).message}`);
  }
}
