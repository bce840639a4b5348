import { Injectable } from '@nestjs/common';
import { type EmitterId, isId, NotFound, type UserId } from '#contracts';
import { Lookups } from '#database';
import { type Emitter, EmitterDirectory, isUncertain } from '#emitters';
import { inTime } from '../database/in-time.js';

/**
 * Decides who may write to the log in an emitter's name. All gateways share the table, and the deletion of a source is announced to it before the request
 * returns. So a source deleted through one gateway is gone for all of them. No cache in memory could disagree.
 */
@Injectable()
export class EmitterOwners {
  /** Query the catalog, in separate lanes: an unknown id must not delay other requests, nor a workflow, whose registration it may have to read, a source. */
  private readonly unknown = {
    source: new Lookups<string, Emitter>((ids) => this.directory.find(ids)),
    workflow: new Lookups<string, Emitter>((ids) => this.directory.find(ids)),
  };

  constructor(private readonly directory: EmitterDirectory) {}

  /** The id of the owner's emitter, active or not. Throws NotFound. */
  async emitterOf(ownerId: UserId, kind: 'source' | 'workflow', id: string): Promise<EmitterId> {
    if (isId(kind, id)) {
      const known = await inTime(this.directory.look(id));
      const emitter = isUncertain(known) ? await this.unknown[kind].get(id) : known;
      if (emitter && !emitter.deleted && emitter.owner_id === ownerId) return id;
    }
    throw new NotFound(kind, id);
  }
}
