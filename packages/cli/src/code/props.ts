import { SluiceError } from '@sluice/client';
import { usageError } from '../session/errors.js';
import { parseExactly } from '../session/exact-json.js';
import { fileText } from '../session/files.js';

/**
 * The values of `-p name=value`: JSON where it is JSON, otherwise text; `@file` is the text of a file. `types`: where the type of a prop is known,
 * a string stays one, though it may look like a number.
 */
export function propsOf(pairs: string[] = [], types: Record<string, string> = {}): Record<string, unknown> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1) throw usageError(`a prop is written name=value, not ${pair}`);
      const [name, text] = [pair.slice(0, at), pair.slice(at + 1)];
      if (text.startsWith('@')) return [name, fileText(text.slice(1))];
      return [name, types[name] === 'string' ? plainText(text) : jsonOrText(text)];
    }),
  );
}

/**
 * Sends props. Their types are in the code of the component, which only Sluice evaluates: if it refuses a value because it must be a string, the value
 * is sent again as text.
 */
export async function sendProps<T>(
  pairs: string[] | undefined,
  types: Record<string, string>,
  send: (props: Record<string, unknown>) => Promise<T>,
): Promise<T> {
  const props = propsOf(pairs, types);
  try {
    return await send(props);
  } catch (error) {
    if (error instanceof SluiceError && / is not a prop of this component/.test(error.message) && Object.keys(types).length > 0)
      error.message += `; its props are ${Object.keys(types).join(', ')}`;
    const refused = error instanceof SluiceError ? [...error.message.matchAll(/configured_props\.([\w$]+) must be a string/g)] : [];
    const strings = refused.map(([, name = '']) => name).filter((name) => Object.hasOwn(props, name) && types[name] !== 'string');
    if (strings.length === 0) throw error;
    return send(propsOf(pairs, { ...types, ...Object.fromEntries(strings.map((name) => [name, 'string'])) }));
  }
}

const plainText = (text: string): string => (/^".*"$/s.test(text) ? String(jsonOrText(text)) : text);

function jsonOrText(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return text;
  }
}
