import { isDeepStrictEqual } from 'node:util';
import {
  appOf,
  AUTH,
  CONNECTION_ID,
  type ConnectionId,
  connectionContext,
  connectionProblem,
  type FieldProblem,
  isId,
  isObject,
  newId,
  type PropDefinition,
  type SourceId,
} from '#contracts';
import type { SecretBox } from '#secrets';
import type { ConnectionRow } from './connection.entity.js';

type Values = Record<string, unknown>;
/** The credentials that a source uses, encrypted, by connection. */
export type UsedCredentials = Record<string, string>;
/** A connection that is stored with its source. */
export type InlineConnection = Pick<ConnectionRow, 'id' | 'app' | 'name' | 'credentials'>;

/** The connections of a source. */
const MAX_CONNECTIONS = 32;
/** Their encrypted credentials together, in bytes: each record of the source's state has them, and many states are read at a time. */
const MAX_USED_BYTES = 256 * 1024;

/** How a source uses connections. */
export interface Connected {
  /** The values to store: credentials are replaced by the ids of connections. */
  values: Values;
  uses: ConnectionId[];
  inline: InlineConnection[];
  problems: FieldProblem[];
}

/** The ids of the connections that the values name; the values may be of any type. */
export const namedConnections = (...values: Values[]): ConnectionId[] =>
  values
    .flatMap((each) => Object.values(each))
    .map((value) => (isObject(value) ? value[CONNECTION_ID] : undefined))
    .filter((id) => isId('connection', id));

/**
 * Resolves the values of `app` props:
 *
 *     {"authProvisionId": "apn_…"}     the connection with this id
 *     {"$auth": {…}}                   a connection that is stored with the source and deleted with it
 *     both                             the latter, as responses show it, with new credentials
 *
 * `before`: the stored values so far; `known`: the connections of the owner that the values name.
 */
export function connected(
  props: PropDefinition[],
  values: Values,
  { sourceId, before, known, box }: { sourceId: SourceId; before: Values; known: readonly ConnectionRow[]; box: SecretBox },
): Connected {
  const result: Connected = { values: { ...values }, uses: [], inline: [], problems: [] };
  for (const prop of props) {
    const { name } = prop;
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (prop.type !== 'app' || !isObject(value)) continue;
    const app = appOf(prop);
    const stored = Object.hasOwn(before, name) ? before[name] : undefined;
    const hadAuth = isObject(stored) && Object.hasOwn(stored, AUTH);
    const own = known.find(({ id, source_id }) => hadAuth && id === stored[CONNECTION_ID] && source_id === sourceId)?.id;
    const bad = (message: string) =>
      result.problems.push({ field: `configured_props.${name}`, message: `configured_props.${name} ${message}` });
    const { [CONNECTION_ID]: given, [AUTH]: sent, ...rest } = value;
    // null: no value, as in the credentials of a connection
    const auth = isObject(sent) ? Object.fromEntries(Object.entries(sent).filter(([, each]) => each !== null)) : {};
    const hasAuth = Object.keys(auth).length > 0;
    if (given === undefined || given === null) {
      if (!hasAuth) {
        if (isObject(sent)) result.values[name] = { ...value, [AUTH]: {} };
        continue;
      }
    } else if (given !== own) {
      const row = known.find(({ id }) => id === given);
      const isKept = isObject(stored) && stored[CONNECTION_ID] === given;
      // earlier versions stored $auth beside the id of a shared connection; the kept value has its credentials
      const isShown = hasAuth && hadAuth && isKept && row !== undefined && isDeepStrictEqual(auth, opened(row, box));
      const problem =
        hasAuth && !isShown
          ? `must not have both ${CONNECTION_ID} and ${AUTH}`
          : (connectionProblem(prop, row) ?? (isKept ? null : othersProblem(row, sourceId)));
      if (problem !== null) bad(problem);
      else if (row) {
        result.uses.push(row.id);
        // without $auth, which marks a connection of the source
        result.values[name] = { ...rest, [CONNECTION_ID]: row.id };
      }
      continue;
    }
    const id = own ?? newId('connection');
    // without credentials, the source's own connection keeps the ones that it has
    if (hasAuth) result.inline.push({ id, app, name: app, credentials: box.seal(JSON.stringify(auth), connectionContext(id)) });
    result.uses.push(id);
    result.values[name] = { ...rest, [CONNECTION_ID]: id, [AUTH]: {} };
  }
  const used = new Set(result.uses);
  const credentials = Object.fromEntries(
    [...known, ...result.inline].filter(({ id }) => used.has(id)).map((each) => [each.id, each.credentials]),
  );
  const problem = used.size > MAX_CONNECTIONS ? `use ${used.size} connections; the limit is ${MAX_CONNECTIONS}` : usedProblem(credentials);
  if (problem !== null) result.problems.push({ field: 'configured_props', message: `configured_props ${problem}` });
  return result;
}

/** Why a source cannot use these credentials; null if it can. */
export function usedProblem(credentials: UsedCredentials): string | null {
  const bytes = Object.values(credentials).reduce((sum, each) => sum + each.length, 0);
  return bytes > MAX_USED_BYTES ? `use ${bytes} bytes of encrypted credentials; the limit is ${MAX_USED_BYTES}` : null;
}

/** A connection that is stored with another source would be deleted with it. */
const othersProblem = (row: ConnectionRow | undefined, sourceId: SourceId): string | null =>
  row?.source_id && row.source_id !== sourceId ? `names the connection of the source ${row.source_id}; create one to share it` : null;

export const credentialsOf = (inline: InlineConnection[]): UsedCredentials =>
  Object.fromEntries(inline.map(({ id, credentials }) => [id, credentials]));

/** Stored values with the credentials of the inline connections of `app` props in place. */
export function withInline(props: PropDefinition[], values: Values, credentials: UsedCredentials | null, box: SecretBox): Values {
  if (credentials === null) return values;
  const apps = new Set(props.filter(({ type }) => type === 'app').map(({ name }) => name));
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      if (!apps.has(name) || !isObject(value) || !Object.hasOwn(value, AUTH)) return [name, value];
      const id = String(value[CONNECTION_ID]);
      if (!Object.hasOwn(credentials, id)) return [name, value];
      return [name, { ...value, [AUTH]: opened({ id, credentials: credentials[id]! }, box) }];
    }),
  );
}

const opened = ({ id, credentials }: { id: string; credentials: string }, box: SecretBox): unknown =>
  JSON.parse(box.open(credentials, connectionContext(id)));
