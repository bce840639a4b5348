import { Injectable } from '@nestjs/common';
import { type EmitterId, isId, NotFound, type UserId } from '#contracts';
import { Lookups } from '#database';
import { type Emitter, EmitterDirectory } from '#emitters';

/**
 * Who may publish in an emitter's name. The table is what all gateways share, and a change of a source is announced to it before the change
 * is answered: so a source that was deleted through one gateway is gone for all of them. There is no cache in memory that could disagree.
 */
@Injectable()
export class EmitterOwners {
  private readonly known = new Lookups<string, Emitter>((ids) => this.directory.known(ids));
  /** Asks the catalog, apart from the others: an id that nobody knows must not hold them up. */
  private readonly unknown = new Lookups<string, Emitter>((ids) => this.directory.find(ids));

  constructor(private readonly directory: EmitterDirectory) {}

  /** The id of the owner's emitter, active or not. Throws NotFound. */
  async emitterOf(ownerId: UserId, kind: 'source' | 'workflow', id: string): Promise<EmitterId> {
    if (isId(kind, id)) {
      const emitter = (await this.known.get(id)) ?? (await this.unknown.get(id));
      if (emitter && !emitter.deleted && emitter.owner_id === ownerId) return id;
    }
    throw new NotFound(kind, id);
  }
}
