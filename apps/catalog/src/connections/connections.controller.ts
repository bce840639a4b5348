import { Controller } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import {
  type Connection,
  type ConnectionCredentials,
  ConnectionReference,
  CreateConnection,
  createConnection,
  deleteConnection,
  FindCredentials,
  findCredentials,
  getConnection,
  type LargePage,
  ListConnections,
  listConnections,
  PatchConnection,
  patchConnection,
} from '#contracts';
import { deadlineOf, Handles, LogRecord } from '#messaging';
import { ConnectionsService } from './connections.service.js';

@Controller()
export class ConnectionsController {
  constructor(private readonly connections: ConnectionsService) {}

  @Handles(createConnection)
  create(@Payload() command: CreateConnection): Promise<Connection> {
    return this.connections.create(command);
  }

  @Handles(getConnection)
  get(@Payload() reference: ConnectionReference): Promise<Connection> {
    return this.connections.get(reference);
  }

  @Handles(listConnections)
  list(@Payload() request: ListConnections): Promise<LargePage<Connection>> {
    return this.connections.list(request);
  }

  @Handles(patchConnection)
  patch(@Payload() command: PatchConnection, @Ctx() record: LogRecord): Promise<Connection> {
    return this.connections.patch(command, deadlineOf(record));
  }

  @Handles(deleteConnection)
  delete(@Payload() reference: ConnectionReference): Promise<void> {
    return this.connections.delete(reference);
  }

  @Handles(findCredentials)
  credentials(@Payload() { owner_id, ids }: FindCredentials): Promise<ConnectionCredentials[]> {
    return this.connections.credentials(owner_id, ids);
  }
}
