import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { connectionContext, type EmitterState, type UserId } from '#contracts';
import { Database } from '#database';
import { Messages } from '#messaging';
import { SecretBox } from '#secrets';
import { FakeMessages } from '#testing';
import { AccountTurns } from '../sources/account-turns.js';
import type { ConnectionRow } from '../sources/connection.entity.js';
import { ConnectionsRepository } from '../sources/connections.repository.js';
import { SourceStatesRepository } from '../sources/source-states.repository.js';
import { SourcesRepository } from '../sources/sources.repository.js';
import { ConnectionsService } from './connections.service.js';

const OWNER = 'u_000000000000000001';
const ID = 'apn_000000000000000001';
const MASK = '••••••••';

describe('a connection', () => {
  const box = new SecretBox([Buffer.alloc(32, 1)]);
  let row: ConnectionRow;
  let copied: unknown[];
  let searched: string[];
  /** The sources that use it. */
  let users: string[];
  let messages: FakeMessages;
  let service: ConnectionsService;

  beforeEach(async () => {
    const credentials = box.seal(JSON.stringify({ key: 'a', nested: { deep: 'b' } }), connectionContext(ID));
    row = { id: ID, owner_id: OWNER, app: 'chat', name: 'chat', credentials, source_id: null, created_at: new Date(0) };
    [copied, searched, users, messages] = [[], [], ['dc_1'], new FakeMessages()];
    const connections: Partial<ConnectionsRepository> = {
      lock: async () => {},
      find: async (_, id) => (id === ID ? row : undefined),
      update: async (_, __, id, decide) => {
        if (id !== ID) return undefined;
        const before = row;
        row = { ...row, ...decide(row) };
        return { before, row };
      },
      delete: async () => true,
    };
    const sources = {
      setCredentials: async (_: unknown, __: UserId, id: string, sealed: string) => {
        copied.push(JSON.parse(box.open(sealed, connectionContext(id))));
        return users;
      },
      findUser: async (_: unknown, __: UserId, id: string) => void searched.push(id),
    };
    const states = {
      async *statesInParts(ids: string[]) {
        for (const emitter_id of ids) yield [{ emitter_id } as EmitterState];
      },
    };
    const module = await Test.createTestingModule({
      providers: [
        ConnectionsService,
        AccountTurns,
        { provide: Database, useValue: { transaction: (work: (transaction: object) => unknown) => work({}) } },
        { provide: ConnectionsRepository, useValue: connections },
        { provide: SourcesRepository, useValue: sources },
        { provide: SourceStatesRepository, useValue: states },
        { provide: Messages, useValue: messages },
        { provide: SecretBox, useValue: box },
      ],
    }).compile();
    service = module.get(ConnectionsService);
  });

  const patch = (credentials: Record<string, unknown>) => service.patch({ owner_id: OWNER, id: ID, credentials });

  it('copies changed credentials to its sources and announces their states', async () => {
    await patch({ key: 'new' });
    expect(copied).toEqual([{ key: 'new', nested: { deep: 'b' } }]);
    expect(messages.announced).toMatchObject([{ key: 'dc_1' }]);
  });

  it.each([
    ['in parts, all of them if each part is applied in time', true, 10_000, 3],
    ['until a part is late', false, 10_000, 1],
    ['while its caller waits', true, 2000, 0],
  ])('announces the states of its sources %s', async (_, applied, ms, parts) => {
    const announce = jest.spyOn(messages, 'announce').mockResolvedValue(applied);
    users = ['dc_1', 'dc_2', 'dc_3'];
    const command = { owner_id: OWNER, id: ID, credentials: { key: 'new' } } as const;
    expect(await service.patch(command, Date.now() + ms)).toMatchObject({ id: ID });
    expect(announce).toHaveBeenCalledTimes(parts);
  });

  it.each<[string, Record<string, unknown>]>([
    ['are the stored ones', { nested: { deep: 'b' }, key: 'a' }],
    ['are masks', { key: MASK }],
    ['remove what does not exist', { other: null }],
  ])('changes no source when the given credentials %s', async (_, credentials) => {
    const before = row.credentials;
    expect(await patch(credentials)).toMatchObject({ credentials: { key: MASK, nested: MASK } });
    expect([copied, messages.announced, row.credentials]).toEqual([[], [], before]);
  });

  it('is searched for in the sources only if it exists', async () => {
    await expect(service.delete({ owner_id: OWNER, id: 'apn_000000000000000002' })).rejects.toMatchObject({ code: 'not_found' });
    await service.delete({ owner_id: OWNER, id: ID });
    expect(searched).toEqual([ID]);
  });
});
