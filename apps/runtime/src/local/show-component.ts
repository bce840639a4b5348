import type { ComponentDescription } from '../sandbox/sandbox.js';

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

/** One line per warning, in the form that editors recognise. */
export const showWarnings = (file: string, { warnings = [] }: ComponentDescription): string =>
  warnings
    .map(({ message, line, column }) => `${[file, line, column].filter((part) => part !== null).join(':')}: warning: ${message}`)
    .join('\n');
