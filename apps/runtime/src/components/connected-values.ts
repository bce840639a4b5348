import {
  AUTH,
  CONNECTION_ID,
  type ConnectionCredentials,
  connectionContext,
  type ConnectionId,
  connectionProblem,
  Invalid,
  isId,
  isObject,
  type PropDefinition,
  UNKNOWN_CONNECTION,
} from '#contracts';
import type { SecretBox } from '#secrets';

type Values = Record<string, unknown>;

/** A value of an `app` prop that names a connection and does not contain its credentials. */
interface NamedConnection {
  prop: PropDefinition;
  value: Values;
  id: ConnectionId;
}

/** The connections whose credentials the values lack. Throws Invalid for an id that no connection can have. */
export function namedConnections(props: PropDefinition[], values: Values): NamedConnection[] {
  return props.flatMap((prop) => {
    const value = Object.hasOwn(values, prop.name) ? values[prop.name] : undefined;
    if (prop.type !== 'app' || !isObject(value)) return [];
    const id = value[CONNECTION_ID];
    if (id === undefined || id === null || (isObject(value[AUTH]) && Object.keys(value[AUTH]).length > 0)) return [];
    if (!isId('connection', id)) throw problemOf(prop, UNKNOWN_CONNECTION);
    return [{ prop, value, id }];
  });
}

/** The values with these credentials as `$auth`. Throws Invalid for a connection that is not among them, or is for another app. */
export function withCredentials(values: Values, named: NamedConnection[], found: ConnectionCredentials[], box: SecretBox): Values {
  const connected = named.map(({ prop, value, id }): [string, Values] => {
    const connection = found.find((each) => each.id === id);
    const problem = connectionProblem(prop, connection);
    if (problem !== null) throw problemOf(prop, problem);
    return [prop.name, { ...value, [AUTH]: JSON.parse(box.open(connection!.credentials, connectionContext(id))) as unknown }];
  });
  return { ...values, ...Object.fromEntries(connected) };
}

const problemOf = ({ name }: PropDefinition, problem: string): Invalid =>
  new Invalid([{ field: `configured_props.${name}`, message: `configured_props.${name} ${problem}` }]);
