import { type EmitterState, SluiceError, type SourceId, type UserId } from '#contracts';
import type { KeysetPage, Session } from '#database';
import type { ComponentsInMemory } from '../components/components-in-memory-for-tests.js';
import { bareState, freeSlug, type SourceChange, type SourceRow, sourceState } from './source.entity.js';
import type { SourceStatesRepository } from './source-states.repository.js';
import type { Decide, SourcesRepository } from './sources.repository.js';

/** In place of SourcesRepository and SourceStatesRepository. */
export class SourcesInMemory
  implements
    Pick<SourcesRepository, 'find' | 'list' | 'requireFewer' | 'requireFree' | 'create' | 'update' | 'switchOff' | 'delete'>,
    Pick<SourceStatesRepository, 'states' | 'bareStates' | 'deletedStates' | 'newIds' | 'statesByEndpoint'>
{
  readonly rows = new Map<SourceId, SourceRow>();
  private readonly deleted: EmitterState[] = [];

  constructor(private readonly components: ComponentsInMemory) {}

  async find(ownerId: UserId, id: SourceId): Promise<SourceRow | undefined> {
    const row = this.rows.get(id);
    return row?.owner_id === ownerId ? row : undefined;
  }

  async list(ownerId: UserId, { limit, after, before }: KeysetPage): Promise<{ rows: SourceRow[]; total: number; cut: boolean }> {
    const own = [...this.rows.values()].filter((row) => row.owner_id === ownerId).sort((a, b) => (a.id < b.id ? 1 : -1));
    const within = own.filter(({ id }) => (after === undefined || id < after) && (before === undefined || id > before));
    const rows = before !== undefined && after === undefined ? within.slice(-limit) : within.slice(0, limit);
    return { rows, total: own.length, cut: false };
  }

  async requireFewer(ownerId: UserId, id: SourceId, most: number): Promise<void> {
    const others = [...this.rows.values()].filter((row) => row.owner_id === ownerId && row.id !== id);
    if (others.length >= most) throw new SluiceError('conflict', 'too many');
  }

  async requireFree(ownerId: UserId, externalId: string | null | undefined, id: SourceId): Promise<void> {
    if (externalId === null || externalId === undefined) return;
    for (const row of this.rows.values())
      if (row.owner_id === ownerId && row.external_id === externalId && row.id !== id) throw new SluiceError('conflict', 'taken');
  }

  async create(ownerId: UserId, id: SourceId, change: SourceChange): Promise<SourceRow> {
    if (this.deleted.some(({ emitter_id }) => emitter_id === id)) throw new SluiceError('conflict', 'deleted');
    const at = new Date(1_700_000_000_500);
    const row =
      this.rows.get(id) ?? (await this.row(ownerId, id, change, { version: 1, endpoint_key: null, created_at: at, updated_at: at }));
    this.rows.set(id, row);
    return row;
  }

  async update(ownerId: UserId, id: SourceId, decide: Decide): Promise<SourceRow | undefined> {
    const before = await this.find(ownerId, id);
    if (!before) return undefined;
    const change = await decide(before, {} as Session);
    if (!change) return before;
    const row = await this.row(ownerId, id, change, { ...before, version: before.version + 1 });
    this.rows.set(id, row);
    return row;
  }

  async switchOff(ownerId: UserId, id: SourceId, version: number): Promise<EmitterState | undefined> {
    const before = await this.find(ownerId, id);
    if (!before?.active || before.version !== version) return undefined;
    const row = { ...before, active: false, version: before.version + 1 };
    this.rows.set(id, row);
    return sourceState(row);
  }

  async delete(ownerId: UserId, id: SourceId): Promise<{ before: SourceRow; state: EmitterState } | undefined> {
    const before = await this.find(ownerId, id);
    if (!before) return undefined;
    this.rows.delete(id);
    const state = sourceState({ ...before, version: before.version + 1 }, { deleted: true });
    this.deleted.push(state);
    return { before, state };
  }

  async states(ids: string[]): Promise<EmitterState[]> {
    return [...this.rows.values()].filter(({ id }) => ids.includes(id)).map((row) => sourceState(row));
  }

  async bareStates(ids: string[]): Promise<EmitterState[]> {
    return [...this.rows.values()].filter(({ id }) => ids.includes(id)).map((row) => bareState(row));
  }

  async deletedStates(ids: string[]): Promise<EmitterState[]> {
    return this.deleted.filter(({ emitter_id }) => ids.includes(emitter_id));
  }

  async newIds(ownerId: UserId): Promise<SourceId[]> {
    return [...this.rows.values()].filter(({ owner_id }) => owner_id === ownerId).map(({ id }) => id);
  }

  async statesByEndpoint(endpointKeys: string[]): Promise<EmitterState[]> {
    return [...this.rows.values()].filter(({ endpoint_key }) => endpointKeys.includes(endpoint_key!)).map((row) => sourceState(row));
  }

  private async row(
    owner_id: UserId,
    id: SourceId,
    { slug, endpoint_key, uses: _, inline = [], ...change }: SourceChange,
    before: Pick<SourceRow, 'version' | 'endpoint_key' | 'created_at' | 'updated_at'>,
  ): Promise<SourceRow> {
    const component = this.components.rows.find((row) => row.id === change.component_id);
    if (!component) throw new Error(`component ${change.component_id} does not exist`);
    const others = [...this.rows.values()].filter((row) => row.owner_id === owner_id && row.id !== id);
    const slugs = new Set(others.map(({ name_slug }) => name_slug));
    return {
      ...{
        id,
        owner_id,
        ...change,
        suspended: false,
        version: before.version,
        created_at: before.created_at,
        updated_at: before.updated_at,
      },
      name_slug: await freeSlug(slug, async () => slugs),
      endpoint_key: before.endpoint_key ?? endpoint_key,
      credentials: inline.length === 0 ? null : Object.fromEntries(inline.map((each) => [each.id, each.credentials])),
      component,
    };
  }
}
