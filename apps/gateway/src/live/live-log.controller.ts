import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { EVENTS_TOPIC } from '#contracts';
import { Batch, Follows, type Position, PositionsOf } from '#messaging';
import { LIVE_GROUP, LiveReader } from './live-reader.js';

/** Reads the topic `events` for the clients of this process, while there are any. */
@Controller()
export class LiveLogController {
  constructor(private readonly reader: LiveReader) {}

  // the API is ready without it
  @Follows(EVENTS_TOPIC, LIVE_GROUP, { vital: false, onDemand: true })
  async handOut(@Payload() { records, before }: Batch): Promise<void> {
    await this.reader.handOut(records, before);
  }

  @PositionsOf(LIVE_GROUP)
  positions(@Payload() partitions: number[]): Promise<Map<number, Position>> {
    return this.reader.positions(partitions);
  }
}
