import { storableText } from '#contracts';
import type { ComponentDescription, ComponentWarning, DedupeStrategy, Hook, PropDefinition } from '../sandbox.js';
import { descriptionLimits as limits } from './description-limits.js';
import { ProtocolBroken } from './guest-message.js';
import { isPropName } from './names.js';

/**
 * Reads a description from the guest's `describeComponent`. Its process has just evaluated untrusted code, so it is read as hostile input. The catalog
 * refuses a `name`, `key` or `version` that it cannot store; other texts are made storable here.
 *
 * @throws ProtocolBroken
 */
export function readDescription(value: unknown): ComponentDescription {
  const given = value as Record<string, unknown>;
  const { configurable_props: props, hooks } = given;
  if (!Array.isArray(props) || props.length > limits.props || !Array.isArray(hooks)) throw new ProtocolBroken('a bad description');
  return {
    name: text(given.name),
    key: textOrNull(given.key),
    version: textOrNull(given.version),
    description: given.description === null ? null : storableText(text(given.description)),
    dedupe: given.dedupe === null ? null : oneOf<DedupeStrategy>(given.dedupe, ['unique', 'greatest', 'last']),
    concurrency: isCount(given.concurrency) ? given.concurrency : 1,
    ...((given.retries === 'schedule' || isCount(given.retries)) && { retries: given.retries }),
    hooks: hooks.map((hook) => oneOf<Hook>(hook, ['deploy', 'activate', 'deactivate'])),
    has_run: given.has_run === true,
    configurable_props: props.map(prop),
    ...(Array.isArray(given.warnings) && given.warnings.length > 0 && { warnings: given.warnings.slice(0, limits.warnings).map(warning) }),
  };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function prop(value: unknown): PropDefinition {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new ProtocolBroken('a bad prop');
  const { name, type, ...attributes } = value as Record<string, unknown>;
  return { name: propName(name), type: storableText(text(type)), ...(storable(attributes) as Record<string, unknown>) };
}

function propName(value: unknown): string {
  if (typeof value !== 'string' || !isPropName(value)) throw new ProtocolBroken('a bad name of a prop');
  return value;
}

function warning(value: unknown): ComponentWarning {
  const { message, line, column } = value as Record<string, unknown>;
  return { message: storableText(text(message)), line: place(line), column: place(column) };
}

/** JSON whose texts and keys can be stored. */
function storable(value: unknown): unknown {
  if (typeof value === 'string') return storableText(value);
  if (Array.isArray(value)) return value.map(storable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [storableText(key), storable(each)]));
}

function place(value: unknown): number | null {
  return Number.isSafeInteger(value) ? (value as number) : null;
}

function oneOf<T extends string>(value: unknown, allowed: T[]): T {
  if (!allowed.includes(value as T)) throw new ProtocolBroken('a bad description');
  return value as T;
}

function textOrNull(value: unknown): string | null {
  return value === null ? null : text(value);
}

function text(value: unknown): string {
  if (typeof value !== 'string' || value.length > limits.text) throw new ProtocolBroken('a bad description');
  return value;
}
