import { Injectable } from '@nestjs/common';
import type { ComponentDescription, UserId } from '#contracts';
import { Database, type Session } from '#database';
import type { ComponentRow, InspectedCode, NewComponent } from './component.entity.js';

const COMPONENT = `SELECT c.id, c.owner_id, c.key, c.name, c.version, c.code_hash, c.created_at, c.updated_at, k.code, k.description
  FROM component c JOIN code k ON k.hash = c.code_hash`;

@Injectable()
export class ComponentsRepository {
  constructor(private readonly database: Database) {}

  /** The owner's newest component of a key: the one created last. */
  async findNewest(ownerId: UserId, key: string): Promise<ComponentRow | undefined> {
    const { rows } = await this.database.query<ComponentRow>(
      `${COMPONENT} WHERE c.owner_id = $1 AND c.key = $2 ORDER BY c.id DESC LIMIT 1`,
      [ownerId, key],
    );
    return rows[0];
  }

  async findRegistered(key: string): Promise<ComponentRow | undefined> {
    const { rows } = await this.database.query<ComponentRow>(`${COMPONENT} WHERE c.registered AND c.key = $1`, [key]);
    return rows[0];
  }

  /** A component that the owner may see and make sources of: one of his, or one of the registry. */
  async findUsable(ownerId: UserId, id: string): Promise<ComponentRow | undefined> {
    const { rows } = await this.database.query<ComponentRow>({
      name: 'component-usable',
      text: `${COMPONENT} WHERE (c.owner_id = $1 OR c.owner_id IS NULL) AND c.id = $2`,
      values: [ownerId, id],
    });
    return rows[0];
  }

  /** Code that has been inspected before, whoever submitted it. */
  async findCode(hash: string): Promise<InspectedCode | undefined> {
    const { rows } = await this.database.query<{ hash: string; code: string; description: ComponentDescription }>(
      'SELECT hash, code, description FROM code WHERE hash = $1',
      [hash],
    );
    return rows[0];
  }

  /** Writes the component and its code; an id that exists already is left as it is. */
  async add(session: Session, { id, owner_id, code, component_url }: NewComponent): Promise<void> {
    await session.query('INSERT INTO code (hash, code, description) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING', [
      code.hash,
      code.code,
      JSON.stringify(code.description),
    ]);
    await session.query(
      `INSERT INTO component (id, owner_id, key, name, version, code_hash, component_url) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING`,
      [id, owner_id, code.description.key, code.description.name, code.description.version, code.hash, component_url],
    );
  }
}
