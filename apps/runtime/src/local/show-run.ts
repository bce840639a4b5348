import type { Emit } from '../sandbox/sandbox.js';
import type { LocalRun } from './local-source.js';

/** Formats a run as lines for people. */
export function showRun({ method, status, duration_ms, logs, emits, dropped, db, response, error }: LocalRun): string {
  const lines = [
    ...logs.map(({ level, message, args }) => `log      ${level}: ${message}${args === undefined ? '' : ` ${args}`}`),
    ...Object.entries(db).map(([key, value]) => `db       ${key} ${value === undefined ? 'deleted' : `= ${JSON.stringify(value)}`}`),
    ...emits.map((emit) => `emit     ${labelled(emit)}`),
    ...dropped.map(({ emit, reason }) => `dropped  ${labelled(emit)} (${reason})`),
    ...(response ? [`respond  ${response.status} ${response.body}`] : []),
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
