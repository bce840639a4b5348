import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { type ComponentDescription, type ComponentId, newId } from '#contracts';
import { Database, type KeysetPage, readKeysetPage } from '#database';
import { ComponentRow, type InspectedCode } from '../components/component.entity.js';
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

/** The registry: components that every account may use, one for each key. */
@Injectable()
export class RegistryRepository {
  constructor(
    private readonly database: Database,
    @InjectRepository(ComponentRow) private readonly rows: Repository<ComponentRow>,
    private readonly components: ComponentsRepository,
  ) {}

  async list(): Promise<RegisteredComponent[]> {
    const registered = await this.rows.find({ where: { registered: true }, order: { key: 'ASC' } });
    return registered.map(({ key, name, version, id, code_hash }) => ({ key: key ?? '', name, version, id, code_hash }));
  }

  /** A page of the registry, the newest registration first. */
  async page(page: KeysetPage): Promise<{ rows: RegistryRow[]; total: number }> {
    const registered = this.rows.createQueryBuilder('component').where('component.registered');
    const { rows, total } = await readKeysetPage(registered, page, (query) => query.innerJoinAndSelect('component.inspected', 'code'));
    return {
      rows: rows.map(({ key, id, name, version, inspected }) => ({
        key: key ?? '',
        id,
        name,
        version,
        description: inspected.description,
      })),
      total,
    };
  }

  /** Makes this code the registry's component of its key. Sources of the previous one keep running its code. */
  async register(key: string, code: InspectedCode, url: string): Promise<void> {
    await this.database.transaction(async (transaction) => {
      // serialises registrations of the same key
      await transaction.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`registry ${key}`]);
      if (await transaction.rows(ComponentRow).existsBy({ registered: true, key, code_hash: code.hash })) return;
      const id = newId('component');
      await this.components.add(transaction, { id, owner_id: null, code, component_url: url });
      await this.components.register(transaction, key, id);
    });
  }

  /** Returns false if no component is registered under this key. */
  remove(key: string): Promise<boolean> {
    return this.components.unregister(key);
  }
}
