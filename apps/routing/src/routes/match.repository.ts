import { Injectable } from '@nestjs/common';
import type { ListenerId, UserId } from '#contracts';
import { EVERY_STREAM, type Stream } from '#events';
import { Database } from '#database';

/** A listener of a stream of an emitter. */
export interface MatchRow {
  /** The index of the requested pair. */
  n: number;
  owner_id: UserId;
  /** null: no listener. */
  listener_id: ListenerId | null;
  /** The newest version of a webhook. */
  version: number | null;
}

/** Prepared SQL: it runs for each batch of events. */
@Injectable()
export class MatchRepository {
  constructor(private readonly database: Database) {}

  /**
   * The listeners of each pair of emitter and stream, in one statement: a row per listener, one row for a pair without listeners, and none for an
   * unknown emitter. Always current: a subscription applies from the moment its request returns, because there is no cache to keep consistent between
   * replicas.
   */
  async match(pairs: { emitterId: string; stream: Stream }[]): Promise<MatchRow[]> {
    const { rows } = await this.database.query<MatchRow>({
      name: 'match',
      text: `
        SELECT asked.n::int - 1 AS n, emitter.owner_id, found.listener_id, found.version
        FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS asked (emitter_id, stream, n)
        JOIN emitter ON emitter.id = asked.emitter_id
        LEFT JOIN LATERAL (
          -- subscribed by id and by glob, or to '' and default: still one delivery
          SELECT DISTINCT s.listener_id, webhook.version
          FROM subscription s
          LEFT JOIN webhook ON webhook.id = s.listener_id
          LEFT JOIN emitter AS listener ON listener.id = s.listener_id
          WHERE s.owner_id = emitter.owner_id
            AND s.emitter_id = ANY (ARRAY[asked.emitter_id, CASE emitter.kind WHEN 'source' THEN 'dc_*' ELSE 'p_*' END, emitter.owner_id])
            -- * is the default stream and all custom ones, but no reserved one
            AND s.stream = ANY (ARRAY[asked.stream, CASE WHEN asked.stream LIKE '$%' THEN asked.stream ELSE '${EVERY_STREAM}' END])
            AND (webhook.active OR (listener.active AND NOT listener.deleted))
            -- a glob does not make an emitter trigger itself
            AND (s.emitter_id = asked.emitter_id OR s.listener_id <> asked.emitter_id)
        ) AS found ON NOT emitter.deleted
        ORDER BY asked.n, found.listener_id`,
      values: [pairs.map(({ emitterId }) => emitterId), pairs.map(({ stream }) => stream)],
    });
    return rows;
  }
}
