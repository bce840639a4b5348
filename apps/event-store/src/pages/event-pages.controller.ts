import { Controller } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import {
  EmitterReference,
  type EmitterEvents,
  type EmitterStream,
  type EventDeletion,
  type EventPage,
  FindEmittersBetween,
  findEmittersBetween,
  FindEvent,
  findEvent,
  FindWithdrawnEmits,
  findWithdrawnEmits,
  ListDeletions,
  listDeletions,
  ListEvents,
  listEvents,
  listStreams,
  type StoredEvent,
  type WaitingEmitKey,
} from '#contracts';
import { deadlineOf, Handles, LogRecord } from '#messaging';
import { StoreProgress } from '../append/store-progress.js';
import { EventPagesRepository } from './event-pages.repository.js';
import { EventPagesService } from './event-pages.service.js';

@Controller()
export class EventPagesController {
  constructor(
    private readonly pages: EventPagesService,
    private readonly repository: EventPagesRepository,
    private readonly progress: StoreProgress,
  ) {}

  @Handles(listEvents)
  list(@Payload() request: ListEvents): Promise<EventPage> {
    return this.pages.list(request);
  }

  @Handles(findEvent)
  find(@Payload() request: FindEvent, @Ctx() record: LogRecord): Promise<StoredEvent> {
    return this.pages.find(request, deadlineOf(record));
  }

  @Handles(listDeletions)
  deletions(@Payload() request: ListDeletions, @Ctx() record: LogRecord): Promise<EventDeletion[]> {
    return this.pages.deletions(request, deadlineOf(record));
  }

  @Handles(findEmittersBetween)
  emittersBetween(@Payload() part: FindEmittersBetween, @Ctx() record: LogRecord): Promise<EmitterEvents[]> {
    return this.repository.emittersBetween(part, deadlineOf(record));
  }

  /** Returns which waiting emits are withdrawn. The runtime queries it before it emits them. */
  @Handles(findWithdrawnEmits)
  async withdrawn(@Payload() { emits }: FindWithdrawnEmits, @Ctx() record: LogRecord): Promise<WaitingEmitKey[]> {
    await this.progress.reachEnd(
      deadlineOf(record),
      emits.map(({ emitter_id }) => emitter_id),
    );
    return this.repository.withdrawn(emits);
  }

  @Handles(listStreams)
  async streams(@Payload() request: EmitterReference): Promise<EmitterStream[]> {
    return this.pages.streams(request);
  }
}
