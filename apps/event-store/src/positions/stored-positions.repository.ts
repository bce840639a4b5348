import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { EVENTS_TOPIC, type StoredPosition } from '#contracts';
import { EventProgress } from '../append/event-progress.entity.js';

@Injectable()
export class StoredPositionsRepository {
  constructor(@InjectRepository(EventProgress) private readonly progress: Repository<EventProgress>) {}

  async list(): Promise<StoredPosition[]> {
    const rows = await this.progress.find({ where: { topic: EVENTS_TOPIC }, order: { partition: 'ASC' } });
    return rows.map(({ partition, next_offset, last_ms, record_ms }) => ({
      partition,
      offset: next_offset,
      clock: last_ms,
      timestamp: record_ms ?? undefined,
    }));
  }
}
