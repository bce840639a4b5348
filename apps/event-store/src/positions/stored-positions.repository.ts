import { Injectable } from '@nestjs/common';
import { EVENTS_TOPIC, type StoredPosition } from '#contracts';
import { Database } from '#database';

@Injectable()
export class StoredPositionsRepository {
  constructor(private readonly database: Database) {}

  async list(): Promise<StoredPosition[]> {
    const { rows } = await this.database.query<StoredPosition>({
      name: 'stored-positions',
      text: 'SELECT partition, next_offset AS "offset", last_ms AS clock FROM event_progress WHERE topic = $1 ORDER BY partition',
      values: [EVENTS_TOPIC],
    });
    return rows;
  }
}
