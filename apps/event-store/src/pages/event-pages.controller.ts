import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
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
import { Handles } from '#messaging';
import { EventPagesRepository } from './event-pages.repository.js';
import { EventPagesService } from './event-pages.service.js';

@Controller()
export class EventPagesController {
  constructor(
    private readonly pages: EventPagesService,
    private readonly repository: EventPagesRepository,
  ) {}

  @Handles(listEvents)
  list(@Payload() request: ListEvents): Promise<EventPage> {
    return this.pages.list(request);
  }

  @Handles(findEvent)
  find(@Payload() request: FindEvent): Promise<StoredEvent> {
    return this.pages.find(request);
  }

  @Handles(listDeletions)
  deletions(@Payload() request: ListDeletions): Promise<EventDeletion[]> {
    return this.pages.deletions(request);
  }

  @Handles(findEmittersBetween)
  emittersBetween(@Payload() part: FindEmittersBetween): Promise<EmitterEvents[]> {
    return this.repository.emittersBetween(part);
  }

  /** Returns which waiting emits are withdrawn. The runtime queries it before it emits them. */
  @Handles(findWithdrawnEmits)
  withdrawn(@Payload() { emits }: FindWithdrawnEmits): Promise<WaitingEmitKey[]> {
    return this.repository.withdrawn(emits);
  }

  @Handles(listStreams)
  async streams(@Payload() request: EmitterReference): Promise<EmitterStream[]> {
    return this.pages.streams(request);
  }
}
