import { Invalid, isObject } from '#contracts';
import type { PropDefinition } from '../sandbox/sandbox.js';

/**
 * The values of `--prop name=value` arguments, by the types of the component's props: text as it is, everything else as JSON.
 * @throws Invalid that names every argument that is wrong and every prop that is missing
 */
export function propArguments(definitions: PropDefinition[], given: string[]): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const argument of given) {
    const at = argument.indexOf('=');
    const name = at < 0 ? argument : argument.slice(0, at);
    const definition = definitions.find((prop) => prop.name === name);
    if (at < 0) problems.push(`--prop ${argument}: write name=value`);
    else if (!definition)
      problems.push(`--prop ${name}: the component has no such prop; it has ${definitions.map((prop) => prop.name).join(', ') || 'none'}`);
    else {
      const value = valueOf(definition.type, argument.slice(at + 1));
      if (value === undefined) problems.push(`--prop ${name}: the value must be of type ${definition.type}, as JSON`);
      else values[name] = value;
    }
  }
  for (const { name, type, optional, default: value } of definitions)
    if (
      /^(string|integer|boolean|object|any)(\[\])?$/.test(type) &&
      optional !== true &&
      value === undefined &&
      !Object.hasOwn(values, name)
    )
      problems.push(`the prop ${name} is required: --prop ${name}=…`);
  if (problems.length > 0) throw new Invalid(problems.join('\n'));
  return values;
}

/** undefined: not a value of the type */
function valueOf(type: string, text: string): unknown {
  if (type === 'string') return text;
  const value = parsed(text);
  const isRight = new Map<string, (value: unknown) => boolean>([
    ['integer', Number.isInteger],
    ['boolean', (value) => typeof value === 'boolean'],
    ['object', isObject],
    ['$.interface.timer', isObject],
  ]);
  if (type.endsWith('[]')) return Array.isArray(value) ? value : type === 'string[]' ? text.split(',') : undefined;
  const isOfType = isRight.get(type);
  if (isOfType) return isOfType(value) ? value : undefined;
  return value === undefined ? text : value;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
