import { type ComponentDescription, SluiceError, type UserId } from '#contracts';
import type { ComponentRow, DescribedComponent, InspectedCode, NewComponent } from './component.entity.js';
import type { ComponentsRepository } from './components.repository.js';

/** Of the least component: what a test is about is added. */
export const describedAs = (changes: Partial<ComponentDescription> = {}): ComponentDescription => ({
  name: 'My source',
  key: null,
  version: null,
  description: null,
  dedupe: null,
  concurrency: 1,
  hooks: [],
  has_run: true,
  configurable_props: [],
  ...changes,
});

/** In place of ComponentsRepository. */
export class ComponentsInMemory implements Pick<
  ComponentsRepository,
  'findNewest' | 'findRegistered' | 'findVisible' | 'describeUsable' | 'describeRegistered' | 'findCode' | 'requireWithin' | 'add'
> {
  readonly rows: ComponentRow[] = [];
  readonly codes = new Map<string, InspectedCode>();

  async findNewest(ownerId: UserId, key: string): Promise<ComponentRow | undefined> {
    return this.rows.findLast((row) => row.owner_id === ownerId && row.key === key);
  }

  async findRegistered(key: string): Promise<ComponentRow | undefined> {
    return this.rows.find((row) => row.registered && row.key === key);
  }

  async findVisible(ownerId: UserId, id: string): Promise<ComponentRow | undefined> {
    return this.rows.find((row) => (row.owner_id === ownerId || row.owner_id === null) && row.id === id);
  }

  async describeUsable(ownerId: UserId, id: string): Promise<DescribedComponent | undefined> {
    const component = await this.findVisible(ownerId, id);
    return component?.removed ? undefined : described(component);
  }

  async describeRegistered(key: string): Promise<DescribedComponent | undefined> {
    return described(await this.findRegistered(key));
  }

  async findCode(hash: string): Promise<InspectedCode | undefined> {
    return this.codes.get(hash);
  }

  async requireWithin(ownerId: UserId, bytes: number, most: number): Promise<void> {
    const own = this.rows.filter(({ owner_id }) => owner_id === ownerId);
    if (own.reduce((sum, { inspected }) => sum + inspected.code.length, bytes) > most) throw new SluiceError('conflict', 'too many bytes');
  }

  async add(_session: unknown, { id, owner_id, code, component_url }: NewComponent): Promise<void> {
    if (!this.codes.has(code.hash)) this.codes.set(code.hash, code);
    if (this.rows.some((row) => row.id === id)) return;
    const { key, name, version } = code.description;
    const at = new Date(1_700_000_000_500);
    this.rows.push({
      ...{ id, owner_id, key, name, version, component_url, registered: false, removed: false, created_at: at, updated_at: at },
      ...{ code_hash: code.hash, inspected: { ...code, created_at: at } },
    });
  }

  /** Makes a component the registry's one of its key. */
  register(id: string): void {
    const row = this.rows.find((each) => each.id === id);
    if (!row) throw new Error(`component ${id} does not exist`);
    for (const other of this.rows) if (other.key === row.key) other.registered = false;
    Object.assign(row, { owner_id: null, registered: true });
  }

  /** Removes the key of a component from the registry. */
  remove(id: string): void {
    const key = this.rows.find((each) => each.id === id)?.key;
    for (const row of this.rows) if (row.key === key && row.owner_id === null) Object.assign(row, { registered: false, removed: true });
  }
}

const described = (row?: ComponentRow): DescribedComponent | undefined =>
  row && { id: row.id, owner_id: row.owner_id, code_hash: row.code_hash, description: row.inspected.description };
