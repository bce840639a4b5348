import type { ComponentDescription, ComponentWarning, DedupeStrategy, Hook, PropDefinition } from '../sandbox.js';
import { descriptionLimits as limits } from '../wire/description-limits.js';
import { depthOf } from '../wire/json-text.js';
import { isPropName, longestPropName } from '../wire/names.js';
import { guestError } from './guest-error.js';
import { NoComponent, type Component } from './load-component.js';

const hooks: Hook[] = ['deploy', 'activate', 'deactivate'];
const strategies: DedupeStrategy[] = ['unique', 'greatest', 'last'];

// Not configured by users: code, and the app's own list of props
const ownAttributes = new Set(['type', 'methods', 'propDefinition', 'propDefinitions', 'additionalProps']);

/** The description of a component is stored with it and shown in every list, so its size is limited. */
const longestProps = 256 * 1024;
const deepestProps = 100;
const longestWarning = 1000;

/** @throws NoComponent */
export function describeComponent(component: Component, warnings: ComponentWarning[]): ComponentDescription {
  const type = component.type;
  if (type === 'action' || type === 'app') throw new NoComponent(`The component is an ${type}, not a source`);
  const { name, dedupe, run } = component;
  if (typeof name !== 'string' || name.trim() === '') throw new NoComponent('The component has no `name` (a string)');
  if (isGiven(dedupe) && !strategies.includes(dedupe as DedupeStrategy))
    throw new NoComponent(`\`dedupe\` is ${show(dedupe)}; it must be one of ${strategies.map(show).join(', ')}`);
  if (isGiven(run) && typeof run !== 'function') throw new NoComponent('`run` is not a function');
  const description = {
    name: bounded('name', name),
    key: text(component, 'key'),
    version: text(component, 'version'),
    description: text(component, 'description'),
    dedupe: isGiven(dedupe) ? (dedupe as DedupeStrategy) : null,
    concurrency: concurrencyOf(component.concurrency),
    ...retriesOf(component.retries),
    hooks: hooksOf(component.hooks),
    has_run: typeof run === 'function',
    configurable_props: propsOf(component.props),
    warnings: warnings.slice(0, limits.warnings).map((each) => ({ ...each, message: each.message.slice(0, longestWarning) })),
  };
  const { length } = JSON.stringify(description);
  if (length > limits.characters)
    throw new NoComponent(`The description of the component has ${length} characters of JSON; the limit is ${limits.characters}`);
  return description;
}

/** A prop's definition, merged with the one of an app that `propDefinition: [app, "name"]` names. */
export function resolveProp(name: string, definition: unknown): Record<string, unknown> {
  const prop = mergedProp(name, definition);
  // Some components have the fixed configuration of an interface under `static`
  return prop.default === undefined && prop.static !== undefined ? { ...prop, default: prop.static } : prop;
}

function mergedProp(name: string, definition: unknown): Record<string, unknown> {
  if (typeof definition === 'string') return { type: definition };
  if (!isObject(definition))
    throw new NoComponent(`The prop \`${name}\` is ${show(definition)}; it must be an object or the name of a type`);
  if (!isGiven(definition.propDefinition)) return definition;
  const [app, inherited] = Array.isArray(definition.propDefinition) ? (definition.propDefinition as unknown[]) : [];
  const definitions = isObject(app) ? app.propDefinitions : undefined;
  const base = isObject(definitions) && typeof inherited === 'string' ? definitions[inherited] : undefined;
  if (!isObject(base))
    throw new NoComponent(`The prop \`${name}\` takes its definition from ${show(inherited)}, which its app does not have`);
  return { ...base, ...definition };
}

function propsOf(props: unknown): PropDefinition[] {
  if (!isGiven(props)) return [];
  if (!isObject(props)) throw new NoComponent('`props` is not an object');
  const names = Object.keys(props);
  if (names.length > limits.props) throw new NoComponent(`The component has ${names.length} props; the limit is ${limits.props}`);
  for (const name of names) checkName(name);
  const resolved = Object.entries(props).map(([name, definition]) => propOf(name, resolveProp(name, definition)));
  const text = propsText(resolved);
  if (text.length > longestProps) throw new NoComponent(`\`props\` has ${text.length} characters of JSON; the limit is ${longestProps}`);
  if (depthOf(text) > deepestProps) throw new NoComponent(`\`props\` is nested deeper than ${deepestProps} levels`);
  return resolved;
}

function propsText(props: PropDefinition[]): string {
  try {
    return JSON.stringify(props);
  } catch (error) {
    throw new NoComponent(`\`props\` is not JSON: ${guestError(error).message}`);
  }
}

function checkName(name: string): void {
  if (!isPropName(name))
    throw new NoComponent(
      `The prop name ${show(name.slice(0, 50))} must have 1 to ${longestPropName} characters, none of them NUL or an unpaired surrogate`,
    );
}

function propOf(name: string, definition: Record<string, unknown>): PropDefinition {
  if (typeof definition.type !== 'string' || definition.type === '') throw new NoComponent(`The prop \`${name}\` has no \`type\``);
  const attributes: Record<string, unknown> = {};
  for (const [attribute, value] of Object.entries(definition)) {
    if (attribute === 'options' && typeof value === 'function') attributes.remoteOptions = true;
    else if (!ownAttributes.has(attribute) && typeof value !== 'function' && value !== undefined) attributes[attribute] = value;
  }
  return { ...attributes, name, type: bounded(`props.${name}.type`, definition.type) };
}

function hooksOf(value: unknown): Hook[] {
  if (!isGiven(value)) return [];
  if (!isObject(value)) throw new NoComponent('`hooks` is not an object');
  return hooks.filter((hook) => typeof value[hook] === 'function');
}

function concurrencyOf(value: unknown): number {
  if (!isGiven(value)) return 1;
  if (!Number.isSafeInteger(value) || (value as number) < 1)
    throw new NoComponent(`\`concurrency\` is ${show(value)}; it must be a whole number of at least 1`);
  return value as number;
}

function retriesOf(value: unknown): Pick<ComponentDescription, 'retries'> {
  if (!isGiven(value) || value === false || value === 0) return {};
  if (value === true) return { retries: 'schedule' };
  if (!Number.isSafeInteger(value) || (value as number) < 1)
    throw new NoComponent(`\`retries\` is ${show(value)}; it must be true, false or a whole number`);
  return { retries: value as number };
}

function text(component: Component, property: string): string | null {
  const value = component[property];
  if (!isGiven(value)) return null;
  if (typeof value !== 'string' && typeof value !== 'number') throw new NoComponent(`\`${property}\` is not a string`);
  return bounded(property, String(value));
}

function bounded(property: string, value: string): string {
  if (value.length > limits.text) throw new NoComponent(`\`${property}\` has ${value.length} characters; the limit is ${limits.text}`);
  return value;
}

function show(value: unknown): string {
  try {
    return JSON.stringify(value) ?? typeof value;
  } catch {
    return typeof value;
  }
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
