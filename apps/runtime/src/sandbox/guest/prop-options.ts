import type { OptionsCall } from '../sandbox.js';
import { appOf, type Members, membersOf } from './component-context.js';
import { resolveProp } from './describe-component.js';
import type { Component } from './load-component.js';
import type { RunState } from './run-state.js';

/** Calls the `options()` of a prop and emits the result as JSON `{options, context}`. */
export async function putOptions(component: Component, self: Members, run: RunState, call: OptionsCall): Promise<void> {
  const definition = membersOf(component.props)[call.prop];
  const { options } = resolveProp(call.prop, definition);
  if (typeof options !== 'function') throw new TypeError(`The prop ${call.prop} has no options()`);
  // a prop that an app defines has the app's options, with arguments that may depend on other props
  const [app, , dependent] = inheritedBy(definition);
  const owner = app === undefined ? self : appOf(component, app, self);
  const more: unknown = typeof dependent === 'function' ? dependent.call(self, run.job.props) : undefined;
  const given = { ...membersOf(more), query: call.query, page: call.page, prevContext: call.prev_context ?? {} };
  const result: unknown = await options.call(owner, given);
  const text = JSON.stringify(optionsOf(result));
  if (Buffer.byteLength(text) > run.limits.eventBytes)
    throw new RangeError(`options() returned more than ${run.limits.eventBytes} bytes of JSON`);
  run.put(['emit', text, {}], text.length);
}

function inheritedBy(definition: unknown): unknown[] {
  const { options, propDefinition } = membersOf(definition);
  return options === undefined && Array.isArray(propDefinition) ? (propDefinition as unknown[]) : [];
}

function optionsOf(result: unknown): { options: unknown[]; context: unknown } {
  const { options = result, context = null } = membersOf(result);
  if (!Array.isArray(options)) throw new TypeError('options() must return an array, or an object with an array `options`');
  if (context !== null && (typeof context !== 'object' || Array.isArray(context)))
    throw new TypeError('`context` of options() must be an object');
  return { options: options.filter((option) => option !== undefined && option !== null).map(labelled), context };
}

function labelled(option: unknown): unknown {
  if (typeof option !== 'object' || option === null) return { label: String(option), value: option };
  const { label, value = label } = option as Members;
  if (value === undefined) throw new TypeError('each option of options() must be a value, or an object with a `value` or a `label`');
  return { label: textOf(label ?? value), value };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value)));
