import { dirname, join, relative } from 'node:path';
import { learnAuthorLines, withAuthorLines } from '../sandbox/guest/author-lines.js';
import type { ComponentDescription, Emit } from '../sandbox/sandbox.js';
import type { LocalRun } from './local-source.js';

/** Formats a description as lines for people. */
export function showComponent({
  name,
  key,
  version,
  dedupe,
  hooks,
  has_run,
  concurrency,
  configurable_props,
  packages = {},
}: ComponentDescription): string {
  const width = Math.max(0, ...configurable_props.map((prop) => prop.name.length));
  return [
    `name      ${name}`,
    `key       ${key ?? '(none)'}`,
    `version   ${version ?? '(none)'}`,
    `run       ${has_run ? 'yes' : 'no: its triggers are emitted as they are'}`,
    `hooks     ${hooks.join(', ') || '(none)'}`,
    `dedupe    ${dedupe ?? '(none)'}`,
    ...(concurrency > 1 ? [`at a time ${concurrency}`] : []),
    ...Object.entries(packages).map(([specifier, version]) => `package   ${specifier} → ${version}`),
    configurable_props.length === 0 ? 'props     (none)' : 'props',
    ...configurable_props.map(
      ({ name, type, optional, default: value }) =>
        `  ${name.padEnd(width)}  ${type}${optional === true ? ', optional' : ''}${value === undefined ? '' : `, default ${JSON.stringify(value)}`}`,
    ),
  ].join('\n');
}

/** The address of the code in a position that is looked up in its source map. */
const FOLDER = 'component:///0/';

/**
 * One line per warning, in the form that editors recognise, with the place in the author's file.
 * @param file as the author has named it
 * @param entry its path in a bundle
 * @param code what was inspected: the file, or the bundle of it and its imports
 */
export function showWarnings(file: string, entry: string, code: string, { warnings = [] }: ComponentDescription): string {
  learnAuthorLines(`${FOLDER}component.js`, code);
  const placeOf = (position: string): string => {
    const [path = '', ...place] = withAuthorLines(`${FOLDER}component.js:${position}`).slice(FOLDER.length).split(':');
    const isEntry = path === 'component.js' || path === entry;
    return [isEntry ? file : join(dirname(file), relative(dirname(entry), path)), ...place].join(':');
  };
  return warnings
    .map(({ message, line, column }) => `${line === null ? file : placeOf(`${line}:${column ?? 1}`)}: warning: ${message}`)
    .join('\n');
}

/** Formats a run as lines for people. */
export function showRun({ method, status, duration_ms, logs, emits, dropped, db, response, error, refused }: LocalRun): string {
  const lines = [
    ...logs.map(({ level, message, args }) => `log      ${level}: ${message}${args === undefined ? '' : ` ${args}`}`),
    ...Object.entries(db).map(([key, value]) => `db       ${key} ${value === undefined ? 'deleted' : `= ${JSON.stringify(value)}`}`),
    ...emits.map((emit) => `emit     ${labelled(emit)}`),
    ...dropped.map(({ emit, reason }) => `dropped  ${labelled(emit)} (${reason})`),
    ...(response ? [`respond  ${response.status} ${response.body}`] : []),
    ...refused.map(({ name, message }) => `refused  ${name}: ${message}`),
    ...(error ? [`error    ${error.stack || `${error.name}: ${error.message}`}`.replaceAll('\n', '\n         ')] : []),
  ];
  return [`${method}: ${status}, ${duration_ms} ms`, ...lines.map((line) => `  ${line}`)].join('\n');
}

function labelled({ event, id, name, summary, deliveryTs }: Emit): string {
  const labels = [
    ...(name === undefined ? [] : [`stream ${name}`]),
    ...(id === undefined ? [] : [`id ${id}`]),
    ...(summary === undefined ? [] : [`"${summary}"`]),
    ...(deliveryTs === undefined ? [] : [`at ${new Date(deliveryTs).toISOString()}`]),
  ];
  return [...labels, event].join('  ');
}
