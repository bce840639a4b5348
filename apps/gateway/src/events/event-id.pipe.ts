import { Injectable, type PipeTransform } from '@nestjs/common';
import { Invalid } from '#contracts';
import { parseEventId } from '#events';

/** An event id in a path. */
@Injectable()
export class EventIdPipe implements PipeTransform<string> {
  transform(value: string): string {
    if (!parseEventId(value))
      throw new Invalid([{ field: 'event_id', message: 'event_id must be an event id, <milliseconds>-<sequence>' }]);
    return value;
  }
}
