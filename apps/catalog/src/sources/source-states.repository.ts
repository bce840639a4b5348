import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type ObjectLiteral, Repository } from 'typeorm';
import { type EmitterState, idFrom, type SourceId, type UserId } from '#contracts';
import { Database } from '#database';
import { ComponentsRepository } from '../components/components.repository.js';
import { bareState, type BareStateRow, type DeletedSourceRow, NEW_MS, SourceRow, sourceState } from './source.entity.js';
import { CHANGED_TOGETHER, withComponent } from './sources.repository.js';

/** The time in the id of a new source is at most this old: a request may be repeated for a day, and the clocks of two services differ. */
const OLDEST_NEW_ID_MS = 25 * 3_600_000;

/** Reads the states of sources, of any account. Only for other services: users must not see them. */
@Injectable()
export class SourceStatesRepository {
  constructor(
    private readonly database: Database,
    @InjectRepository(SourceRow) private readonly sources: Repository<SourceRow>,
    private readonly components: ComponentsRepository,
  ) {}

  /** The states of the existing sources among these ids. */
  states(ids: string[]): Promise<EmitterState[]> {
    return this.statesWhere('source.id = ANY(:ids)', { ids });
  }

  /** The same without deployments. */
  async bareStates(ids: string[]): Promise<EmitterState[]> {
    const { rows } = await this.database.query<BareStateRow>({
      name: 'source-states',
      text: 'SELECT id, owner_id, active, suspended, version, name, created_at FROM source WHERE id = ANY($1)',
      values: [ids],
    });
    return rows.map((row) => bareState(row));
  }

  /** The last states, without names and deployments, of those of these sources that were deleted within the last days. */
  async deletedStates(ids: string[]): Promise<EmitterState[]> {
    const { rows } = await this.database.query<Pick<DeletedSourceRow, 'state'>>({
      name: 'source-deleted-states',
      text: 'SELECT state FROM deleted_source WHERE id = ANY($1)',
      values: [ids],
    });
    return rows.map(({ state }) => state);
  }

  /** As `states`, a part at a time. */
  async *statesInParts(ids: SourceId[]): AsyncGenerator<EmitterState[]> {
    for (let start = 0; start < ids.length; start += CHANGED_TOGETHER) yield await this.states(ids.slice(start, start + CHANGED_TOGETHER));
  }

  /** The ids of the account's new sources. They contain the time of the request, by the clock of the gateway: an index finds those that may be new. */
  async newIds(ownerId: UserId): Promise<SourceId[]> {
    const { rows } = await this.database.query<{ id: SourceId }>({
      name: 'sources-new',
      text: "SELECT id FROM source WHERE owner_id = $1 AND id > $2 AND created_at > now() - $3 * interval '1 millisecond'",
      values: [ownerId, idFrom('source', Date.now() - OLDEST_NEW_ID_MS, Buffer.alloc(7)), NEW_MS],
    });
    return rows.map(({ id }) => id);
  }

  /** The states of the sources with these endpoints: the key is the secret. */
  statesByEndpoint(endpointKeys: string[]): Promise<EmitterState[]> {
    return this.statesWhere('source.endpoint_key = ANY(:endpointKeys)', { endpointKeys });
  }

  private async statesWhere(condition: string, values: ObjectLiteral): Promise<EmitterState[]> {
    const found = withComponent(this.sources.createQueryBuilder('source').addSelect('source.credentials'));
    const rows = await found.where(condition, values).getMany();
    await this.components.addDescriptions(rows.map(({ component }) => component));
    return rows.map((row) => sourceState(row));
  }
}
