import { Injectable } from '@nestjs/common';
import type { WaitingEmitKey } from '#contracts';
import { Database } from '#database';

@Injectable()
export class WithdrawnEmitsRepository {
  constructor(private readonly database: Database) {}

  /** Prepared SQL: joins a batch of keys. */
  async find(emits: WaitingEmitKey[]): Promise<WaitingEmitKey[]> {
    const { rows } = await this.database.query<WaitingEmitKey>({
      name: 'emits-withdrawn',
      text: `SELECT emitter_id, emit_id FROM unnest($1::text[], $2::text[]) AS asked (emitter_id, emit_id)
             JOIN withdrawn_emit USING (emitter_id, emit_id)`,
      values: [emits.map(({ emitter_id }) => emitter_id), emits.map(({ emit_id }) => emit_id)],
    });
    return rows;
  }
}
