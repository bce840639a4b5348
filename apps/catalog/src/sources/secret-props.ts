import { AUTH, type FieldProblem, isObject, mapValues, MASK, type PropDefinition, unmasked } from '#contracts';

type Values = Record<string, unknown>;

type Secrecy = 'open' | 'secret' | 'credentials';
const secrecyOf = ({ type, secret }: PropDefinition): Secrecy => (type === 'app' ? 'credentials' : secret === true ? 'secret' : 'open');

/** The value of a prop as responses show it. */
export function maskedValue(prop: PropDefinition, value: unknown): unknown {
  if (value === undefined || value === null) return value;
  if (prop.secret === true && prop.type !== 'app') return MASK;
  if (prop.type !== 'app' || !isObject(value) || !Object.hasOwn(value, AUTH)) return value;
  return { ...value, [AUTH]: maskedCredentials(value[AUTH]) };
}

/** Keys are shown, values never. */
export const maskedCredentials = (credentials: unknown): unknown =>
  isObject(credentials) ? mapValues(credentials, () => MASK) : credentials === undefined || credentials === null ? credentials : MASK;

/**
 * The new values of a source: the given ones, with the previous values in place of masks, and those that are kept without being sent. A secret value
 * that would be visible from now on must be sent again.
 */
export function keptSecrets(
  props: PropDefinition[],
  { given, kept = {} }: { given: Values; kept?: Values },
  before?: { props: PropDefinition[]; values: Values },
): { values: Values; problems: FieldProblem[] } {
  const problems: FieldProblem[] = [];
  const values: Values = { ...kept, ...given };
  for (const prop of props) {
    const { name } = prop;
    if (!Object.hasOwn(values, name)) continue;
    const old = before && Object.hasOwn(before.values, name) ? before.values[name] : undefined;
    const definition = before?.props.find((each) => each.name === name);
    const was = definition && hasSecret(definition, old) ? secrecyOf(definition) : 'open';
    const now = secrecyOf(prop);
    const sent = values[name];
    const bad = (message: string) => {
      problems.push({ field: `configured_props.${name}`, message: `configured_props.${name} ${message}` });
      // one problem per prop is enough
      delete values[name];
    };
    const isKept = !Object.hasOwn(given, name) || sent === MASK;
    if (was !== 'open' && was !== now && isKept) bad('is no longer secret: send its value again');
    else if (now === 'secret' && sent === MASK) {
      if (was === 'secret') values[name] = old;
      else bad('is a mask, and has no stored value: send the value itself');
    } else if (now === 'secret' && Array.isArray(sent) && sent.includes(MASK)) {
      bad('has a mask among its items: send the items themselves');
    } else if (now === 'credentials' && isObject(sent) && isObject(sent[AUTH])) {
      const { values: credentials, missing } = unmasked(sent[AUTH], isObject(old) ? old[AUTH] : undefined);
      if (missing.length > 0) bad(onlyMasked(missing.map((key) => `${AUTH}.${key}`)));
      else values[name] = { ...sent, [AUTH]: credentials };
    }
  }
  return { values, problems };
}

/** The problem of credentials whose values with these names are masks, as in a response, but are not stored. */
export const onlyMasked = (names: string[]): string => `has only a mask as ${names.join(', ')}, and no stored value: send the value itself`;

const hasSecret = (prop: PropDefinition, value: unknown): boolean =>
  value !== undefined && value !== null && (prop.type !== 'app' || (isObject(value) && Object.hasOwn(value, AUTH)));
