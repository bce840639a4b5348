import { createHash } from 'node:crypto';
import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { type Component, type ComponentDescription, type ComponentId, type InspectedComponent, unixSeconds, type UserId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';

/** Code that the runtime has accepted, and its description. Several components may share it. */
@Entity('code')
export class Code {
  @PrimaryColumn(BYTEWISE_TEXT)
  hash!: string;

  /** Large: a query selects it explicitly. */
  @Column('text', { select: false })
  code!: string;

  @Column('json')
  description!: ComponentDescription;

  /** The packages that were installed for it: an ES module, compressed with Zstandard. Large: a query selects it explicitly. */
  @Column('bytea', { nullable: true, select: false })
  bundle!: Buffer | null;

  @Column(CREATED_AT)
  created_at!: Date;
}

export type InspectedCode = Pick<Code, 'hash' | 'code' | 'description' | 'bundle'>;

/** Code with what the runtime has read from it. */
export const inspectedCode = (code: string, { bundle, ...description }: InspectedComponent): InspectedCode => ({
  hash: codeHash(code),
  code,
  description,
  bundle: bundle === undefined ? null : Buffer.from(bundle, 'base64'),
});

@Entity('component')
@Index('component_by_key', ['owner_id', 'key', 'id'], { where: 'key IS NOT NULL' })
@Index('component_by_owner', ['owner_id', 'id'])
@Index('component_of_code', ['code_hash'])
@Index('component_registered', ['key'], { unique: true, where: 'registered' })
export class ComponentRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: ComponentId;

  /** null: in the registry. */
  @Column({ ...BYTEWISE_TEXT, nullable: true })
  owner_id!: UserId | null;

  @Column('text', { nullable: true })
  key!: string | null;

  @Column('text')
  name!: string;

  @Column('text', { nullable: true })
  version!: string | null;

  @Column(BYTEWISE_TEXT)
  code_hash!: string;

  @ManyToOne(() => Code)
  @JoinColumn({ name: 'code_hash', foreignKeyConstraintName: 'component_code_hash_fkey' })
  inspected!: Relation<Code>;

  /** Where the code is from, without a password. In the registry, null: it ships with Sluice. */
  @Column('text', { nullable: true })
  component_url!: string | null;

  @Column('boolean', { default: false })
  registered!: boolean;

  /** The operator has removed its key from the registry: it gets no new sources, also if another version of the key is registered later. */
  @Column('boolean', { default: false })
  removed!: boolean;

  @Column(CREATED_AT)
  created_at!: Date;

  @Column(CREATED_AT)
  updated_at!: Date;
}

/** How much the components of an account take. Code that several accounts submit counts for the first one. */
@Entity('stored_code')
export class StoredCode {
  @PrimaryColumn(BYTEWISE_TEXT)
  owner_id!: UserId;

  @Column('bigint')
  bytes!: number;
}

/** A component without its code: what its sources need of it. This part of it never changes. */
export interface DescribedComponent {
  id: ComponentId;
  /** null: in the registry. */
  owner_id: UserId | null;
  code_hash: string;
  description: ComponentDescription;
}

/** The fields of a new component. */
export interface NewComponent {
  id: ComponentId;
  owner_id: UserId | null;
  code: InspectedCode;
  component_url: string | null;
}

/** Lower-case hex SHA-256 of the UTF-8 code exactly as submitted. */
export const codeHash = (code: string): string => createHash('sha256').update(code, 'utf8').digest('hex');

/** As the API returns it. */
export const componentOf = (row: ComponentRow): Component => ({
  id: row.id,
  code: row.inspected.code,
  code_hash: row.code_hash,
  name: row.name,
  version: row.version,
  configurable_props: row.inspected.description.configurable_props,
  ...(row.inspected.description.warnings && { warnings: row.inspected.description.warnings }),
  ...(row.inspected.description.packages && { packages: row.inspected.description.packages }),
  created_at: unixSeconds(row.created_at),
  updated_at: unixSeconds(row.updated_at),
});
