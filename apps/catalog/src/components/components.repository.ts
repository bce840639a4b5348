import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type SelectQueryBuilder } from 'typeorm';
import type { ComponentId, UserId } from '#contracts';
import type { Session } from '#database';
import { Code, ComponentRow, type InspectedCode, type NewComponent } from './component.entity.js';

/** The only writer of the tables `component` and `code`. */
@Injectable()
export class ComponentsRepository {
  constructor(
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

  /** A component that the owner may see and create sources of: one of the account, or one of the registry. */
  async findUsable(ownerId: UserId, id: string): Promise<ComponentRow | undefined> {
    const usable = this.withCode().where('(component.owner_id = :ownerId OR component.owner_id IS NULL) AND component.id = :id', {
      ownerId,
      id,
    });
    return (await usable.getOne()) ?? undefined;
  }

  /** Code that has been inspected before, for any account. */
  async findCode(hash: string): Promise<InspectedCode | undefined> {
    return (
      (await this.codes.findOne({ select: { hash: true, code: true, description: true, bundle: true }, where: { hash } })) ?? undefined
    );
  }

  /** Writes the component and its code, unless its id exists. */
  async add(session: Session, { id, owner_id, code, component_url }: NewComponent): Promise<void> {
    const { hash, description, bundle } = code;
    const { key, name, version } = description;
    await session
      .rows(Code)
      .createQueryBuilder()
      .insert()
      .values({ hash, code: code.code, description: description as object, bundle })
      .orIgnore()
      .execute();
    await session
      .rows(ComponentRow)
      .createQueryBuilder()
      .insert()
      .values({ id, owner_id, key, name, version, code_hash: hash, component_url })
      .orIgnore()
      .execute();
  }

  /** Makes a component the registry's one of its key. */
  async register(session: Session, key: string, id: ComponentId): Promise<void> {
    await this.unregister(key, session);
    await session.rows(ComponentRow).update({ id }, { registered: true });
  }

  /** Removes a key from the registry. Returns false if the key is not registered. */
  async unregister(key: string, session?: Session): Promise<boolean> {
    const rows = session?.rows(ComponentRow) ?? this.components;
    const { affected } = await rows.update({ registered: true, key }, { registered: false });
    return affected === 1;
  }

  private withCode(): SelectQueryBuilder<ComponentRow> {
    return this.components
      .createQueryBuilder('component')
      .innerJoinAndSelect('component.inspected', 'inspected')
      .addSelect('inspected.code');
  }
}
