import { isDeepStrictEqual } from 'node:util';
import {
  AUTH,
  CONFIGURED_PROPS_BYTES,
  CONNECTION_ID,
  type FieldProblem,
  isObject,
  PROPS_TOO_LARGE,
  type PropDefinition,
  type Schedule,
  unknownField,
} from '#contracts';
import { CRON_LENGTH, MAX_TIMERS, nextCron } from '#schedules';

export const TIMER = '$.interface.timer';
export const HTTP = '$.interface.http';
const DB = '$.service.db';

/** The parts of a source that are derived from the user's values. */
export interface PropValues {
  schedules: Record<string, Schedule>;
  hasEndpoint: boolean;
  problems: FieldProblem[];
}

/** Replacements for interfaces that exist only in other systems. */
const INSTEAD: Record<string, string> = {
  '$.interface.apphook':
    ': use $.interface.http and register its endpoint as a webhook in the app (hooks.activate), or $.interface.timer and poll the app',
  '$.interface.email':
    ': use $.interface.http with a mail service that posts incoming messages to a URL, or $.interface.timer and poll a mailbox over HTTP',
};

/**
 * Validates the values that a user configured against a component's props, and computes the schedules of its timers. Reports one problem for each
 * invalid prop. kept: the current schedules of timers that the request does not set: neither a new default in the code nor a new limit changes them.
 * counted: the values whose size is limited.
 */
export function checkPropValues(
  props: PropDefinition[],
  values: Record<string, unknown>,
  { minSeconds, kept = {}, counted = values }: { minSeconds: number; kept?: Record<string, Schedule>; counted?: Record<string, unknown> },
): PropValues {
  const problems: FieldProblem[] = [];
  const schedules: Record<string, Schedule> = {};
  const bad = (name: string, message: string) =>
    problems.push({ field: `configured_props.${name}`, message: `configured_props.${name} ${message}` });
  const known = new Map(props.map((prop) => [prop.name, prop]));
  if (Buffer.byteLength(JSON.stringify(counted)) > CONFIGURED_PROPS_BYTES) {
    problems.push({ field: 'configured_props', message: PROPS_TOO_LARGE });
    return { schedules, hasEndpoint: false, problems };
  }
  const timers = props
    .filter(({ type }) => type === TIMER)
    .filter((prop) => (own(values, prop.name) ?? own(kept, prop.name) ?? prop.default ?? null) !== null);
  // a source from before this limit keeps its timers, so that it can be changed
  if (timers.length > MAX_TIMERS && timers.some(({ name }) => own(kept, name) === undefined)) {
    problems.push({
      field: 'configured_props',
      message: `configured_props have ${timers.length} timers, with those that the component sets by default; the limit is ${MAX_TIMERS}`,
    });
    return { schedules, hasEndpoint: false, problems };
  }
  for (const name of Object.keys(values)) if (!known.has(name)) bad(name, 'is not a prop of this component');
  for (const prop of props) {
    const value = own(values, prop.name);
    if (prop.type === TIMER) {
      const before = own(kept, prop.name);
      const schedule = before ?? timerSchedule(prop, value, minSeconds);
      if (typeof schedule === 'string') bad(prop.name, schedule);
      else if (schedule) schedules[prop.name] = schedule;
    } else if (prop.type.startsWith('$.interface.') && prop.type !== HTTP) {
      bad(prop.name, `has the interface ${prop.type}, which sources cannot have${INSTEAD[prop.type] ?? ''}`);
    } else if (value === undefined || value === null) {
      if (isRequired(prop)) bad(prop.name, 'is required');
    } else {
      const problem = typeProblem(prop, value);
      if (problem) bad(prop.name, problem);
    }
  }
  return { schedules, hasEndpoint: props.some(({ type }) => type === HTTP), problems };
}

const own = <T>(object: Record<string, T>, name: string): T | undefined => (Object.hasOwn(object, name) ? object[name] : undefined);

/** Without endpoints and databases, which Sluice sets. A client may send back the endpoint of a response. */
export function configured(props: PropDefinition[], values: Record<string, unknown>): Record<string, unknown> {
  const made = new Set(props.filter(({ type }) => type === HTTP || type === DB).map(({ name }) => name));
  return Object.fromEntries(Object.entries(values).filter(([name]) => !made.has(name)));
}

/** Types whose values come from the user. */
const VALUE_TYPE = /^(string|integer|boolean|object|any)(\[\])?$/;

const isRequired = (prop: PropDefinition): boolean => VALUE_TYPE.test(prop.type) && prop.optional !== true && prop.default === undefined;

function timerSchedule(prop: PropDefinition, value: unknown, minSeconds: number): Schedule | string | undefined {
  if (value !== undefined && value !== null) return timerProblem(value) ?? readSchedule(value, minSeconds);
  if (prop.default !== undefined && prop.default !== null) return readSchedule(prop.default, minSeconds);
  return prop.optional === true ? undefined : 'is required';
}

/** The timers whose given values mean the schedules that they have, such as values that a client sends back as it read them. */
export const unchangedTimers = (props: PropDefinition[], given: Record<string, unknown>, schedules: Record<string, Schedule>): string[] =>
  props
    .filter(({ name, type }) => type === TIMER && Object.hasOwn(given, name) && Object.hasOwn(schedules, name))
    // a limit that was raised since is for new schedules
    .filter(({ name }) => isDeepStrictEqual(timerProblem(given[name]) ?? readSchedule(given[name], 1), schedules[name]))
    .map(({ name }) => name);

const TIMER_FIELDS = ['intervalSeconds', 'interval_seconds', 'cron', 'timezone'];

/** The problem of a field that would have no effect, or null. Defaults in the code are not checked for it, because the user cannot mend them. */
function timerProblem(value: unknown): string | null {
  if (!isObject(value)) return null;
  const { cron, timezone } = value;
  if (timezone && !cron) return 'must have a timezone only with cron';
  return unknownIn(value, TIMER_FIELDS);
}

/** The problem of a value, or null. */
function typeProblem(prop: PropDefinition, value: unknown): string | null {
  const { type } = prop;
  if (type === DB) return 'is set by Sluice: omit it';
  if (type === HTTP) return isEndpoint(value) ? null : 'is set by Sluice: omit it, or send the {endpoint_url} of a response';
  if (type === 'app') return appProblem(value);
  const match = VALUE_TYPE.exec(type);
  if (!match) return null;
  const [, item = '', isArray] = match;
  // Many components offer the ids of an API as options of a text, and these are numbers
  const fits = (each: unknown): boolean => is(item, each) || (item === 'string' && hasOptions(prop) && Number.isFinite(each));
  if (!isArray) return fits(value) ? null : `must be ${article(item)}`;
  if (!Array.isArray(value)) return `must be an array`;
  return value.every(fits) ? null : `must be an array whose items are each ${article(item)}`;
}

const hasOptions = ({ options, remoteOptions }: PropDefinition): boolean => Array.isArray(options) || remoteOptions === true;

const APP_FIELDS = [CONNECTION_ID, AUTH];

/** The problem of the value of an app, which names a connection or contains credentials (see source-connections.ts), or null. */
function appProblem(value: unknown): string | null {
  if (!isObject(value)) return 'must be an object with authProvisionId or $auth';
  const unknown = unknownIn(value, APP_FIELDS);
  if (unknown !== null) return unknown;
  const { $auth } = value;
  return $auth === undefined || $auth === null || isObject($auth) ? null : 'must have an object as $auth';
}

/** The problem of the first field that is not known, or null. */
function unknownIn(value: object, known: readonly string[]): string | null {
  const unknown = Object.keys(value).find((field) => !known.includes(field));
  return unknown === undefined ? null : `has the ${unknownField(unknown, known)}`;
}

/** A value as responses show it, which a client may send back; it has no effect. */
function isEndpoint(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { endpoint_url, ...rest } = value;
  // a key of scope `read` gets {}
  return (typeof endpoint_url === 'string' || endpoint_url === null || endpoint_url === undefined) && Object.keys(rest).length === 0;
}

function is(type: string, value: unknown): boolean {
  switch (type) {
    case 'string':
      return typeof value === 'string';
    case 'integer':
      return Number.isSafeInteger(value);
    case 'boolean':
      return typeof value === 'boolean';
    case 'object':
      return isObject(value);
    default:
      return true;
  }
}

const article = (type: string): string => (/^[aio]/.test(type) ? `an ${type}` : `a ${type}`);

/** About 68 years. */
const MAX_INTERVAL_SECONDS = 2 ** 31 - 1;

/** Parses a timer's value as users write it (`{intervalSeconds}`, `{cron, timezone}`) or as responses show it (`{cron, interval_seconds}`). Returns a
 * sentence if it is neither. */
export function readSchedule(value: unknown, minSeconds: number): Schedule | string {
  if (!isObject(value)) return 'must be an object with intervalSeconds or cron';
  const { intervalSeconds, interval_seconds, cron, timezone } = value;
  const seconds = intervalSeconds ?? interval_seconds ?? undefined;
  if (typeof cron === 'string' && cron !== '') {
    if (seconds !== undefined) return 'must have intervalSeconds or cron, not both';
    return readCron(cron, timezone);
  }
  if (cron !== undefined && cron !== null && cron !== '') return 'must have a string as cron, such as "0 9 * * 1-5"';
  if (seconds === undefined) return 'must be an object with intervalSeconds or cron';
  if (!Number.isSafeInteger(seconds)) return 'must have an integer as intervalSeconds';
  if ((seconds as number) > MAX_INTERVAL_SECONDS) return `must have an intervalSeconds of at most ${MAX_INTERVAL_SECONDS}`;
  if ((seconds as number) < minSeconds) return `must have an intervalSeconds of at least ${minSeconds}`;
  return { interval_seconds: seconds as number, cron: null };
}

function readCron(cron: string, timezone: unknown): Schedule | string {
  if (timezone !== undefined && timezone !== null && typeof timezone !== 'string')
    return 'must have a string as timezone, such as "Europe/Berlin"';
  if (cron.length > CRON_LENGTH) return `must have a cron expression of at most ${CRON_LENGTH} characters`;
  try {
    if (!nextCron(cron, timezone, new Date())) return `has a cron expression that never matches: ${cron}`;
  } catch (error) {
    return `has an invalid cron expression or timezone; valid are, for example, "0 9 * * 1-5" and "Europe/Berlin" (${(error as Error).message})`;
  }
  return { interval_seconds: null, cron, ...(timezone ? { timezone: timezone } : {}) };
}
