import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import {
  type Connection,
  type ConnectionCredentials,
  connectionContext,
  type ConnectionId,
  type ConnectionReference,
  type CreateConnection,
  cursorOf,
  idOfCursor,
  Invalid,
  type LargePage,
  type ListConnections,
  NotFound,
  pageOf,
  type PatchConnection,
  SluiceError,
  type SourceId,
  unixSeconds,
  type UserId,
  unmasked,
} from '#contracts';
import { Database, type Transaction } from '#database';
import { Messages } from '#messaging';
import { SecretBox } from '#secrets';
import { announceChanges } from '../announcements/announce-changes.js';
import { maskedCredentials, onlyMasked } from '../sources/secret-props.js';
import { listedPart } from '../listed-part.js';
import { AccountTurns } from '../sources/account-turns.js';
import type { ConnectionRow } from '../sources/connection.entity.js';
import { ConnectionsRepository } from '../sources/connections.repository.js';
import { SourceStatesRepository } from '../sources/source-states.repository.js';
import { SourcesRepository } from '../sources/sources.repository.js';

const MAX_BYTES = 64 * 1024;
/** A list shows each name with a mask, and has up to a hundred connections. */
const MAX_NAMES = 1000;
/** More than an announcement, and then the reply, take. */
const ANNOUNCED_WITHIN_MS = 3000;

type Credentials = Record<string, unknown>;

/** Connections. Changed credentials are copied to the sources that use them, because their facts contain them. */
@Injectable()
export class ConnectionsService {
  constructor(
    private readonly database: Database,
    private readonly connections: ConnectionsRepository,
    private readonly sources: SourcesRepository,
    private readonly states: SourceStatesRepository,
    private readonly turns: AccountTurns,
    private readonly messages: Messages,
    private readonly box: SecretBox,
  ) {}

  async create({ id, owner_id, app, name, credentials }: CreateConnection): Promise<Connection> {
    if (app === '') throw new Invalid([{ field: 'app', message: 'app must not be empty' }]);
    const row = await this.connections.create({
      ...{ id, owner_id, app, name: name || app },
      credentials: this.sealed(id, this.merged({}, credentials)),
    });
    if (!row) throw new NotFound('connection', id);
    return this.toConnection(row);
  }

  async get({ owner_id, id }: ConnectionReference): Promise<Connection> {
    const row = await this.connections.find(owner_id, id);
    if (!row) throw new NotFound('connection', id);
    return this.toConnection(row);
  }

  async list(request: ListConnections): Promise<LargePage<Connection>> {
    const { owner_id, limit, after, before, may_cut } = request;
    const page = { limit, after: idOfCursor('connection', 'after', after), before: idOfCursor('connection', 'before', before) };
    const { rows, total, cut } = await this.connections.list(owner_id, page, listedPart(request));
    const connections = rows.map((row) => this.toConnection(row));
    // a gateway of an earlier version shows all members
    return { ...pageOf(connections, total, ({ id }) => cursorOf(id)), ...(may_cut && { cut }) };
  }

  /**
   * Announces the changes of the sources in parts, until one is late or the caller would not wait for the next one: the facts of all of them follow.
   *
   * @param deadline when the caller stops waiting, in ms since the epoch
   */
  async patch(command: PatchConnection, deadline = Infinity): Promise<Connection> {
    const { owner_id } = command;
    const { row, users } = await this.turns.takeAlone(owner_id, () => this.change(command));
    for await (const states of this.states.statesInParts(users)) {
      const isInTime = Date.now() < deadline - ANNOUNCED_WITHIN_MS;
      if (!isInTime || !(await announceChanges(this.messages, states, 'configured'))) break;
    }
    return this.toConnection(row);
  }

  /** Returns the changed connection, and the sources that have got new credentials. */
  private change({ owner_id, id, name, credentials }: PatchConnection): Promise<{ row: ConnectionRow; users: SourceId[] }> {
    return this.database.transaction(async (transaction) => {
      await this.connections.lock(transaction, owner_id);
      const changed = await this.connections.update(transaction, owner_id, id, (before) => ({
        name: name === undefined ? before.name : name || before.app,
        credentials: credentials === undefined ? before.credentials : this.changed(before, credentials),
      }));
      if (!changed) throw new NotFound('connection', id);
      const { before, row } = changed;
      const isNew = row.credentials !== before.credentials;
      return { row, users: isNew ? await this.sources.setCredentials(transaction, owner_id, id, row.credentials) : [] };
    });
  }

  async delete({ owner_id, id }: ConnectionReference): Promise<void> {
    // the search for a source that uses it reads all sources of the account
    if (!(await this.connections.find(owner_id, id))) throw new NotFound('connection', id);
    const remove = async (transaction: Transaction) => {
      await this.connections.lock(transaction, owner_id);
      const user = await this.sources.findUser(transaction, owner_id, id);
      if (user) throw new SluiceError('conflict', `the source ${user} uses this connection`);
      if (!(await this.connections.delete(transaction, owner_id, id))) throw new NotFound('connection', id);
    };
    await this.turns.takeAlone(owner_id, () => this.database.transaction(remove));
  }

  /** Those of the ids that are the owner's. */
  async credentials(ownerId: UserId, ids: ConnectionId[]): Promise<ConnectionCredentials[]> {
    const rows = await this.connections.findAll(ownerId, ids);
    return rows.map(({ id, app, credentials }) => ({ id, app, credentials }));
  }

  private merged(before: Credentials, sent: Credentials): Credentials {
    const { values, missing } = unmasked(sent, before);
    const bad = (message: string) => new Invalid([{ field: 'credentials', message: `credentials ${message}` }]);
    if (missing.length > 0) throw bad(onlyMasked(missing));
    const merged = Object.fromEntries(Object.entries({ ...before, ...values }).filter(([, value]) => value !== null));
    const names = Object.keys(merged).length;
    if (names === 0) throw bad('must have at least one value that is not null');
    if (names > MAX_NAMES) throw bad(`must have at most ${MAX_NAMES} values`);
    if (Buffer.byteLength(JSON.stringify(merged)) > MAX_BYTES) throw bad(`must be at most ${MAX_BYTES} bytes of JSON`);
    return merged;
  }

  /** The encrypted credentials: the stored ones if their values are the same, because each new encryption differs. */
  private changed(before: ConnectionRow, sent: Credentials): string {
    const opened = this.opened(before);
    const merged = this.merged(opened, sent);
    return isDeepStrictEqual(merged, opened) ? before.credentials : this.sealed(before.id, merged);
  }

  private sealed(id: string, credentials: Credentials): string {
    return this.box.seal(JSON.stringify(credentials), connectionContext(id));
  }

  private opened({ id, credentials }: ConnectionRow): Credentials {
    return JSON.parse(this.box.open(credentials, connectionContext(id))) as Credentials;
  }

  private toConnection(row: ConnectionRow): Connection {
    const { id, app, name, created_at } = row;
    return { id, app, name, credentials: maskedCredentials(this.opened(row)) as Credentials, created_at: unixSeconds(created_at) };
  }
}
