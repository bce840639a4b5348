import { Controller } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import {
  CreateSource,
  createSource,
  deleteSource,
  GetSource,
  getSource,
  type LargePage,
  ListSources,
  listSources,
  PatchSource,
  patchSource,
  type Source,
  SourceReference,
  SwitchOffSource,
  switchOffSource,
  UpdateSource,
  updateSource,
} from '#contracts';
import { deadlineOf, Handles, LogRecord } from '#messaging';
import { SourcesService } from './sources.service.js';

@Controller()
export class SourcesController {
  constructor(private readonly sources: SourcesService) {}

  @Handles(createSource)
  create(@Payload() command: CreateSource, @Ctx() record: LogRecord): Promise<Source> {
    return this.sources.create(command, deadlineOf(record));
  }

  @Handles(updateSource)
  update(@Payload() command: UpdateSource, @Ctx() record: LogRecord): Promise<Source> {
    return this.sources.update(command, deadlineOf(record));
  }

  @Handles(patchSource)
  patch(@Payload() command: PatchSource, @Ctx() record: LogRecord): Promise<Source> {
    return this.sources.patch(command, deadlineOf(record));
  }

  @Handles(getSource)
  get(@Payload() request: GetSource): Promise<Source> {
    return this.sources.get(request);
  }

  @Handles(deleteSource)
  delete(@Payload() reference: SourceReference): Promise<void> {
    return this.sources.delete(reference);
  }

  @Handles(switchOffSource)
  switchOff(@Payload() command: SwitchOffSource): Promise<boolean> {
    return this.sources.switchOff(command);
  }

  @Handles(listSources)
  list(@Payload() request: ListSources): Promise<LargePage<Source>> {
    return this.sources.list(request);
  }
}
