import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { IsNull, Repository } from 'typeorm';
import { type ComponentDescription, type ComponentId, newId } from '#contracts';
import { Database, type KeysetPage, type PagePart, readKeysetPage, type Transaction } from '#database';
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

/** SQL: of what a list shows of a component. A description is kept as text, which may be compressed to a small part of what is parsed. */
const SHOWN_BYTES = '(SELECT octet_length(description::text) FROM code WHERE hash = component.code_hash)';

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
  async page(page: KeysetPage, part: PagePart = {}): Promise<{ rows: RegistryRow[]; total: number; cut: boolean }> {
    const registered = this.rows.createQueryBuilder('component').where('component.registered');
    const { rows, ...found } = await readKeysetPage(registered, page, {
      ...part,
      size: SHOWN_BYTES,
      join: (query) => query.innerJoinAndSelect('component.inspected', 'code'),
    });
    return {
      rows: rows.map(({ key, id, name, version, inspected }) => ({
        key: key ?? '',
        id,
        name,
        version,
        description: inspected.description,
      })),
      ...found,
    };
  }

  /**
   * Makes this code the registry's component of its key. Sources of the previous one keep running its code.
   *
   * @param file where it was read
   * @param shipped it ships with Sluice, and does not return or replace what the operator has removed or registered
   */
  async register(key: string, code: InspectedCode, file: string, shipped = false): Promise<void> {
    const url = shipped ? null : file;
    await this.database.transaction(async (transaction) => {
      await lockKey(transaction, key);
      const rows = transaction.rows(ComponentRow);
      const registered = await rows.findOneBy({ registered: true, key });
      if (registered?.code_hash === code.hash) {
        // the operator has registered the one that ships with Sluice, which its next version may replace
        if (shipped && registered.component_url !== null) await rows.update({ id: registered.id }, { component_url: null });
        return;
      }
      // the previous version, which may run beside this one, registers what ships with Sluice with its path
      const isOperators = registered ? ![null, file].includes(registered.component_url) : await rows.existsBy({ owner_id: IsNull(), key });
      if (shipped && isOperators) return;
      const id = newId('component');
      await this.components.add(transaction, { id, owner_id: null, code, component_url: url });
      await this.components.register(transaction, key, id);
    });
  }

  /** No version of the key gets new sources any more. Returns false if no component is registered under this key. */
  remove(key: string): Promise<boolean> {
    return this.database.transaction(async (transaction) => {
      await lockKey(transaction, key);
      return this.components.remove(transaction, key);
    });
  }
}

/** Until the transaction ends, no other one registers or removes a component of this key. */
const lockKey = (transaction: Transaction, key: string) =>
  transaction.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`registry ${key}`]);
