import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LRUCache } from 'lru-cache';
import { IsNull, Repository, type SelectQueryBuilder } from 'typeorm';
import { type ComponentDescription, type ComponentId, NotFound, SluiceError, type UserId } from '#contracts';
import { Database, FOREIGN_KEY_VIOLATION, type Session, type Transaction } from '#database';
import { Code, ComponentRow, type DescribedComponent, type InspectedCode, type NewComponent, StoredCode } from './component.entity.js';

/** The bytes that a component takes beside its code and its URL. */
const ROW_BYTES = 1024;
/** The length of the descriptions that are kept in memory, as JSON. As objects, they take several times as much. */
const DESCRIBED_LENGTH = 4 * 1024 * 1024;

/** The codes of PostgreSQL's errors about `\u0000` and half a surrogate pair in JSON. */
const UNREADABLE_JSON = new Set(['22P05', '22P02']);

/** The only writer of the tables `component`, `code` and `stored_code`. */
@Injectable()
export class ComponentsRepository {
  private readonly descriptions = new LRUCache<string, DescribedComponent>({ max: 10_000, maxSize: DESCRIBED_LENGTH });

  constructor(
    private readonly database: Database,
    @InjectRepository(ComponentRow) private readonly components: Repository<ComponentRow>,
    @InjectRepository(Code) private readonly codes: Repository<Code>,
  ) {}

  /** The owner's newest component of a key: the one created last. */
  async findNewest(ownerId: UserId, key: string): Promise<ComponentRow | undefined> {
    const newest = this.withCode()
      .where('component.owner_id = :ownerId AND component.key = :key', { ownerId, key })
      .orderBy('component.id', 'DESC')
      .limit(1);
    return (await newest.getOne()) ?? undefined;
  }

  async findRegistered(key: string): Promise<ComponentRow | undefined> {
    return (await this.withCode().where('component.registered AND component.key = :key', { key }).getOne()) ?? undefined;
  }

  /** A component that the owner may see: one of the account, or one that is or was in the registry. */
  async findVisible(ownerId: UserId, id: string): Promise<ComponentRow | undefined> {
    const visible = this.withCode().where('(component.owner_id = :ownerId OR component.owner_id IS NULL) AND component.id = :id', {
      ownerId,
      id,
    });
    return (await visible.getOne()) ?? undefined;
  }

  /** A component that the owner may create sources of. */
  async describeUsable(ownerId: UserId, id: string): Promise<DescribedComponent | undefined> {
    const component = await this.describe(this.database, id);
    if (component?.owner_id === ownerId) return component;
    return component?.owner_id === null && !(await this.isRemoved(id)) ? component : undefined;
  }

  /** Never remembered, because another process removes components. */
  private async isRemoved(id: string): Promise<boolean> {
    const { rows } = await this.database.query({
      name: 'component-removed',
      text: 'SELECT FROM component WHERE id = $1 AND removed',
      values: [id],
    });
    return rows.length > 0;
  }

  describeRegistered(key: string): Promise<DescribedComponent | undefined> {
    return this.readDescription(this.database, 'component-registered', 'c.registered AND c.key = $1', key);
  }

  /** A component of any owner. A deleted one may still be remembered: the foreign key refuses its sources. */
  async describe(session: Session, id: string): Promise<DescribedComponent | undefined> {
    return this.descriptions.get(id) ?? (await this.readDescription(session, 'component-describe', 'c.id = $1', id));
  }

  /**
   * Adds to components what lists and other services need of their descriptions: the hooks, how many runs are allowed at a time, and the names, types and
   * secrecy of the props. A whole description may have 256 KB, and a hundred sources may have the same one.
   */
  async addDescriptions(components: ComponentRow[]): Promise<void> {
    if (components.length === 0) return;
    try {
      const descriptions = await this.descriptionsInShort([...new Set(components.map(({ code_hash }) => code_hash))]);
      for (const component of components) component.inspected = { description: descriptions.get(component.code_hash) } as Code;
    } catch (error) {
      if (!UNREADABLE_JSON.has((error as { code?: string }).code ?? '')) throw error;
      // earlier versions stored texts that PostgreSQL cannot read as JSON
      for (const component of components) {
        const found = await this.describe(this.database, component.id);
        if (!found) throw new NotFound('component', component.id);
        component.inspected = { description: inShort(found.description) } as Code;
      }
    }
  }

  private async descriptionsInShort(hashes: string[]): Promise<Map<string, DescriptionInShort>> {
    const { rows } = await this.database.query<DescriptionInShort & { hash: string }>({
      name: 'descriptions-in-short',
      text: `SELECT hash, description->'hooks' AS hooks, description->>'dedupe' AS dedupe, description->'concurrency' AS concurrency, coalesce((
               SELECT json_agg(json_build_object('name', prop->'name', 'type', prop->'type', 'secret', prop->'secret') ORDER BY nth)
               FROM json_array_elements(description->'configurable_props') WITH ORDINALITY AS props (prop, nth)
             ), '[]') AS configurable_props
             FROM code WHERE hash = ANY($1)`,
      values: [hashes],
    });
    return new Map(rows.map(({ hash, ...description }) => [hash, description]));
  }

  /** The component does not exist any more. */
  forget(id: ComponentId): void {
    this.descriptions.delete(id);
  }

  /** Code that has been inspected before, for any account. */
  async findCode(hash: string): Promise<InspectedCode | undefined> {
    return (
      (await this.codes.findOne({ select: { hash: true, code: true, description: true, bundle: true }, where: { hash } })) ?? undefined
    );
  }

  /** The bytes that the components of the account take. */
  async storedBytes(ownerId: UserId): Promise<number> {
    const { rows } = await this.database.query<{ bytes: number }>({
      name: 'component-bytes',
      text: 'SELECT bytes FROM stored_code WHERE owner_id = $1',
      values: [ownerId],
    });
    return rows[0]?.bytes ?? 0;
  }

  /** Throws a conflict if the components of the account and these bytes exceed `most`. `add` decides; this check avoids work for code that it would refuse. */
  async requireWithin(ownerId: UserId, bytes: number, most: number): Promise<void> {
    const total = (await this.storedBytes(ownerId)) + bytes;
    if (total > most) throw tooManyBytes(total, most);
  }

  /**
   * Writes the component and its code, unless its id exists, and counts the bytes. Throws a conflict if the components of the account would take more than
   * `most` bytes.
   */
  async add(session: Session, component: NewComponent, most = Infinity): Promise<void> {
    if (session !== this.database) return this.insert(session, component, most);
    const insert = () => this.database.transaction((transaction) => this.insert(transaction, component, most));
    try {
      await insert();
    } catch (error) {
      // at the same moment, the code was deleted with the last account that had it
      if ((error as { code?: string }).code !== FOREIGN_KEY_VIOLATION) throw error;
      await insert();
    }
  }

  private async insert(session: Session, { id, owner_id, code, component_url }: NewComponent, most: number): Promise<void> {
    const { hash, bundle } = code;
    const { key, name, version } = code.description;
    const description = JSON.stringify(code.description);
    const bytes = Buffer.byteLength(code.code) + Buffer.byteLength(description) + (bundle?.length ?? 0);
    const { rows } = await session.query<{ bytes: number }>({
      name: 'component-add',
      text: `WITH accepted AS (INSERT INTO code (hash, code, description, bundle) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING 1),
             added AS (INSERT INTO component (id, owner_id, key, name, version, code_hash, component_url)
                       VALUES ($5, $6, $7, $8, $9, $1, $10) ON CONFLICT DO NOTHING RETURNING 1)
             INSERT INTO stored_code (owner_id, bytes)
             SELECT $6, sum(bytes) FROM (SELECT $11::bigint AS bytes FROM accepted UNION ALL SELECT ${ROW_BYTES} + coalesce(octet_length($10), 0) FROM added) AS stored
             WHERE $6 IS NOT NULL HAVING count(*) > 0
             ON CONFLICT (owner_id) DO UPDATE SET bytes = stored_code.bytes + excluded.bytes RETURNING bytes`,
      values: [hash, code.code, description, bundle, id, owner_id, key, name, version, component_url, bytes],
    });
    for (const stored of rows) if (stored.bytes > most) throw tooManyBytes(stored.bytes, most);
  }

  /** Deletes the components of an account, and code that no other component has. Returns the number of components. */
  async removeAll(transaction: Transaction, ownerId: UserId): Promise<number> {
    // an account may have very many
    transaction.takeLong();
    const { rows } = await transaction.query<{ code_hash: string }>('DELETE FROM component WHERE owner_id = $1 RETURNING code_hash', [
      ownerId,
    ]);
    const hashes = [...new Set(rows.map(({ code_hash }) => code_hash))].sort();
    // the lock waits for components that are being added, which the next statement sees then
    await transaction.query('SELECT FROM code WHERE hash = ANY($1) ORDER BY hash FOR UPDATE', [hashes]);
    await transaction.query('DELETE FROM code WHERE hash = ANY($1) AND NOT EXISTS (SELECT FROM component WHERE code_hash = hash)', [
      hashes,
    ]);
    await transaction.rows(StoredCode).delete({ owner_id: ownerId });
    return rows.length;
  }

  /** Makes a component the registry's one of its key. The previous one gets new sources only by its id. */
  async register(session: Session, key: string, id: ComponentId): Promise<void> {
    await this.unregister(session, key);
    await session.rows(ComponentRow).update({ id }, { registered: true });
  }

  /** Removes a key from the registry, with all versions of it. Returns false if the key is not registered. */
  async remove(session: Session, key: string): Promise<boolean> {
    if (!(await this.unregister(session, key))) return false;
    await session.rows(ComponentRow).update({ owner_id: IsNull(), key }, { removed: true });
    return true;
  }

  private async unregister(session: Session, key: string): Promise<boolean> {
    const { affected } = await session.rows(ComponentRow).update({ registered: true, key }, { registered: false });
    return affected === 1;
  }

  /** Prepared SQL without the code, which is large. */
  private async readDescription(session: Session, name: string, condition: string, value: string): Promise<DescribedComponent | undefined> {
    const { rows } = await session.query<Omit<DescribedComponent, 'description'> & { description: string }>({
      name,
      text: `SELECT c.id, c.owner_id, c.code_hash, k.description::text FROM component c JOIN code k ON k.hash = c.code_hash WHERE ${condition}`,
      values: [value],
    });
    const [row] = rows;
    if (!row) return undefined;
    const component = { ...row, description: JSON.parse(row.description) as ComponentDescription };
    this.descriptions.set(component.id, component, { size: row.description.length });
    return component;
  }

  private withCode(): SelectQueryBuilder<ComponentRow> {
    return this.components
      .createQueryBuilder('component')
      .innerJoinAndSelect('component.inspected', 'inspected')
      .addSelect('inspected.code');
  }
}

type DescriptionInShort = Pick<ComponentDescription, 'hooks' | 'dedupe' | 'concurrency' | 'configurable_props'>;

const inShort = ({ hooks, dedupe, concurrency, configurable_props }: ComponentDescription): DescriptionInShort => ({
  ...{ hooks, dedupe, concurrency },
  configurable_props: configurable_props.map(({ name, type, secret }) => ({ name, type, secret })),
});

const tooManyBytes = (bytes: number, most: number): SluiceError =>
  new SluiceError('conflict', `the components of this account would use ${bytes} bytes; the limit is ${most}`);
