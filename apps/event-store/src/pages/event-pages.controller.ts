import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { EmitterReference, type EmitterStream, type EventPage, ListEvents, listEvents, listStreams } from '#contracts';
import { Answers } from '#messaging';
import { EventPagesService } from './event-pages.service.js';

@Controller()
export class EventPagesController {
  constructor(private readonly pages: EventPagesService) {}

  @Answers(listEvents)
  list(@Payload() request: ListEvents): Promise<EventPage> {
    return this.pages.list(request);
  }

  @Answers(listStreams)
  async streams(@Payload() request: EmitterReference): Promise<EmitterStream[]> {
    return this.pages.streams(request);
  }
}
