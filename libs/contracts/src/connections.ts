import { IsArray, IsObject, IsOptional } from 'class-validator';
import type { PropDefinition } from './components.js';
import { command, query } from './contract.js';
import { type Id, IsId, type UserId } from './ids.js';
import { type LargePage, LargePageRequest } from './page.js';
import { IsText, MayBeAbsent, NAME_LENGTH } from './values.js';

export type ConnectionId = Id<'connection'>;

/** The context to which the encrypted credentials of a connection are bound (libs/secrets). */
export const connectionContext = (id: string): string => `connection ${id}`;

/** The app whose connections an `app` prop takes. */
export const appOf = ({ name, app }: PropDefinition): string => (typeof app === 'string' && app !== '' ? app : name);

/** The problem of a value that names none of the owner's connections. */
export const UNKNOWN_CONNECTION = 'names a connection that does not exist';

/** Why this connection of the owner cannot be the value of an `app` prop, or null. */
export function connectionProblem(prop: PropDefinition, connection: Pick<Connection, 'app'> | undefined): string | null {
  if (!connection) return UNKNOWN_CONNECTION;
  return connection.app === appOf(prop) ? null : `names a connection of the app ${connection.app}, not ${appOf(prop)}`;
}

/** A connection as the API returns it. Times are Unix seconds. */
export interface Connection {
  id: ConnectionId;
  app: string;
  name: string;
  /** The names of the credentials; the values are masked. */
  credentials: Record<string, unknown>;
  created_at: number;
}

export class NewConnection {
  @IsText(NAME_LENGTH)
  app!: string;

  @IsOptional()
  @IsText(NAME_LENGTH)
  name?: string | null;

  @IsObject({ message: ({ value }) => (value === undefined ? 'credentials is required' : 'credentials must be an object') })
  credentials!: Record<string, unknown>;
}

export class CreateConnection extends NewConnection {
  /** The id of the new connection, so that a repeated command creates one connection. */
  @IsId('connection') id!: ConnectionId;
  @IsId('user') owner_id!: UserId;
}
export const createConnection = command<Connection>()('catalog.connection.create', CreateConnection, { secret: true });

/** Credentials are merged by name; null removes a value, and a mask keeps it. A name of null is reset to the app. */
export class ConnectionPatch {
  @IsOptional()
  @IsText(NAME_LENGTH)
  name?: string | null;

  @MayBeAbsent()
  @IsObject({ message: 'credentials must be an object' })
  credentials?: Record<string, unknown>;
}

export class PatchConnection extends ConnectionPatch {
  @IsId('user') owner_id!: UserId;
  @IsId('connection') id!: ConnectionId;
}
/** The sources that use it have the new credentials at their next run. */
export const patchConnection = command<Connection>()('catalog.connection.patch', PatchConnection, { secret: true });

/** One connection of an owner. */
export class ConnectionReference {
  @IsId('user') owner_id!: UserId;
  @IsId('connection') id!: ConnectionId;
}
export const getConnection = query<Connection>()('catalog.connection.get', ConnectionReference);
/** Rejected with `conflict` while a source uses it. */
export const deleteConnection = command<void>()('catalog.connection.delete', ConnectionReference);

export class ListConnections extends LargePageRequest {
  @IsId('user') owner_id!: UserId;
}
export const listConnections = query<LargePage<Connection>>()('catalog.connection.list', ListConnections);

export class FindCredentials {
  @IsId('user') owner_id!: UserId;
  @IsArray() ids!: ConnectionId[];
}

/** The credentials of a connection, encrypted (`connectionContext`), and the app that they are for. */
export interface ConnectionCredentials {
  id: ConnectionId;
  app: string;
  credentials: string;
}

/** Those of the ids that are connections of the owner. */
export const findCredentials = query<ConnectionCredentials[]>()('catalog.connection.find-credentials', FindCredentials);
