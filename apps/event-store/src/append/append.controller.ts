import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { EVENTS_TOPIC } from '#contracts';
import { Batch, Follows, type Position, PositionsOf } from '#messaging';
import { AppendRepository } from './append.repository.js';
import { EventIntake } from './event-intake.js';

const GROUP = 'events';

/** Reads the topic `events`, from the store's own position. */
@Controller()
export class AppendController {
  constructor(
    private readonly events: AppendRepository,
    private readonly intake: EventIntake,
  ) {}

  // events wait up to 50 ms for others, so that a steady trickle needs fewer transactions
  @Follows(EVENTS_TOPIC, GROUP, { gatherMs: 50 })
  async append(@Payload() { partition, records, before, after }: Batch): Promise<void> {
    await this.intake.take(partition, records, before, after);
  }

  @PositionsOf(GROUP)
  positions(@Payload() partitions: number[]): Promise<Map<number, Position>> {
    return this.events.positions(partitions);
  }
}
