import { Injectable } from '@nestjs/common';
import { type ComponentDescription, type ComponentId, newId } from '#contracts';
import { Database, type KeysetPage, readKeysetPage } from '#database';
import type { InspectedCode } from '../components/component.entity.js';
import { ComponentsRepository } from '../components/components.repository.js';

export interface RegisteredComponent {
  key: string;
  name: string;
  version: string | null;
  id: string;
  code_hash: string;
}

interface RegistryRow {
  key: string;
  id: ComponentId;
  name: string;
  version: string | null;
  description: ComponentDescription;
}

/** The registry: components that everyone may use, one at a time for each key. */
@Injectable()
export class RegistryRepository {
  constructor(
    private readonly database: Database,
    private readonly components: ComponentsRepository,
  ) {}

  async list(): Promise<RegisteredComponent[]> {
    const { rows } = await this.database.query<RegisteredComponent>(
      'SELECT key, name, version, id, code_hash FROM component WHERE registered ORDER BY key',
    );
    return rows;
  }

  /** A page of it, the component that was registered last first. */
  page(page: KeysetPage): Promise<{ rows: RegistryRow[]; total: number }> {
    const select = 'SELECT c.key, c.id, c.name, c.version, k.description FROM component c JOIN code k ON k.hash = c.code_hash';
    return readKeysetPage<RegistryRow>(this.database, { select, where: 'c.registered', values: [], id: 'c.id' }, page);
  }

  /** Makes this code the registry's component of its key. Sources of the one before keep what they run. */
  async register(key: string, code: InspectedCode, url: string): Promise<void> {
    await this.database.transaction(async (transaction) => {
      // two that register the same key at once wait for each other here
      await transaction.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`registry ${key}`]);
      const { rowCount } = await transaction.query('SELECT FROM component WHERE registered AND key = $1 AND code_hash = $2', [
        key,
        code.hash,
      ]);
      if (rowCount === 1) return;
      await transaction.query('UPDATE component SET registered = false WHERE registered AND key = $1', [key]);
      const id = newId('component');
      await this.components.add(transaction, { id, owner_id: null, code, component_url: url });
      await transaction.query('UPDATE component SET registered = true WHERE id = $1', [id]);
    });
  }

  /** False when there is no such key. */
  async remove(key: string): Promise<boolean> {
    const { rowCount } = await this.database.query('UPDATE component SET registered = false WHERE registered AND key = $1', [key]);
    return rowCount === 1;
  }
}
