import { Injectable } from '@nestjs/common';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { EmitterId, UserId } from '#contracts';
import { BYTEWISE_TEXT, Database, type Transaction } from '#database';

/** A deleted emitter that had subscriptions: the API hides them, and they only apply to its events from before, and those of its last runs. */
@Entity('ended_emitter')
export class EndedEmitterRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  emitter_id!: EmitterId;

  @Column(BYTEWISE_TEXT)
  owner_id!: UserId;

  /** How many it had at its end. */
  @Column('int')
  subscriptions!: number;

  @Index('ended_emitter_age')
  @Column('timestamptz', { default: () => 'now()' })
  ended_at!: Date;
}

/** Of a subscription whose emitter was deleted. SQL, for queries of the table `subscription`. */
export const HAS_ENDED = 'EXISTS (SELECT FROM ended_emitter WHERE ended_emitter.emitter_id = subscription.emitter_id)';

/** How long the subscriptions to deleted emitters are kept, and how many of an account. */
export interface KeptSubscriptions {
  days: number;
  most: number;
  minutes: number;
}

/** The only writer of the table `ended_emitter`. */
@Injectable()
export class EndedEmittersRepository {
  constructor(private readonly database: Database) {}

  /** Ends the subscriptions to a deleted emitter. SQL: it takes one row, however many they are. */
  async add(transaction: Transaction, ownerId: UserId, emitterId: EmitterId): Promise<void> {
    await transaction.query({
      name: 'emitter-end',
      text: `INSERT INTO ended_emitter (emitter_id, owner_id, subscriptions)
             SELECT $1, $2, count(*) FROM subscription WHERE emitter_id = $1 HAVING count(*) > 0 ON CONFLICT DO NOTHING`,
      values: [emitterId, ownerId],
    });
  }

  /** Continues the subscriptions to an emitter that exists again. */
  async remove(transaction: Transaction, emitterId: EmitterId): Promise<void> {
    await transaction.rows(EndedEmitterRow).delete({ emitter_id: emitterId });
  }

  /** Removes those of an account, after its subscriptions. */
  async removeAll(ownerId: UserId): Promise<void> {
    await this.database.rows(EndedEmitterRow).delete({ owner_id: ownerId });
  }

  /**
   * The emitters whose subscriptions are to be deleted: after some days, and the oldest ones of an account that has more than `most` subscriptions that have
   * ended, as soon as they ended some minutes ago.
   */
  async findOld({ days, most, minutes }: KeptSubscriptions): Promise<EmitterId[]> {
    const { rows } = await this.database.query<{ emitter_id: EmitterId }>(
      `SELECT emitter_id FROM ended_emitter WHERE ended_at < now() - make_interval(days => $1)
       UNION
       SELECT emitter_id FROM (
         SELECT emitter_id, ended_at, sum(subscriptions) OVER (PARTITION BY owner_id ORDER BY ended_at DESC, emitter_id) AS newer
         FROM ended_emitter WHERE owner_id IN (SELECT owner_id FROM ended_emitter GROUP BY owner_id HAVING sum(subscriptions) > $2)
       ) AS counted WHERE newer > $2 AND ended_at < now() - make_interval(mins => $3)`,
      [days, most, minutes],
    );
    return rows.map(({ emitter_id }) => emitter_id);
  }

  /** Removes those of these emitters that have no subscriptions any more. */
  async removeWithout(emitterIds: EmitterId[]): Promise<void> {
    await this.database.query(
      'DELETE FROM ended_emitter WHERE emitter_id = ANY($1) AND NOT EXISTS (SELECT FROM subscription WHERE subscription.emitter_id = ended_emitter.emitter_id)',
      [emitterIds],
    );
  }
}
