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
  listDeletions,
  ListEvents,
  listEvents,
  listStreams,
  type StoredEvent,
} from '#contracts';
import { Handles } from '#messaging';
import { EventPagesService } from './event-pages.service.js';

@Controller()
export class EventPagesController {
  constructor(private readonly pages: EventPagesService) {}

  @Handles(listEvents)
  list(@Payload() request: ListEvents): Promise<EventPage> {
    return this.pages.list(request);
  }

  @Handles(findEvent)
  find(@Payload() request: FindEvent): Promise<StoredEvent> {
    return this.pages.find(request);
  }

  @Handles(listDeletions)
  deletions(@Payload() request: EmitterReference): Promise<EventDeletion[]> {
    return this.pages.deletions(request);
  }

  @Handles(findEmittersBetween)
  emittersBetween(@Payload() part: FindEmittersBetween): Promise<EmitterEvents[]> {
    return this.pages.emittersBetween(part);
  }

  @Handles(listStreams)
  async streams(@Payload() request: EmitterReference): Promise<EmitterStream[]> {
    return this.pages.streams(request);
  }
}
