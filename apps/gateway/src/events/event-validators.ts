import { Injectable, type PipeTransform } from '@nestjs/common';
import { ValidateBy } from 'class-validator';
import { Invalid } from '#contracts';
import { eventNameProblem, parseEventId, readableStreamProblem, streamOf } from '#events';

/** The id of an event, which need not exist. `orEmpty`: a cursor, which may be empty; that counts as absent. */
export const IsEventId = ({ orEmpty = false } = {}): PropertyDecorator =>
  ValidateBy({
    name: 'isEventId',
    validator: {
      validate: (value: unknown) => typeof value === 'string' && ((orEmpty && value === '') || parseEventId(value) !== null),
      defaultMessage: (args) => `${args?.property} must be an event id, <milliseconds>-<sequence>`,
    },
  });

const isStream = (name: string, problemOf: (eventName: string) => string | null): PropertyDecorator =>
  ValidateBy({
    name,
    validator: {
      validate: (value: unknown) => typeof value === 'string' && problemOf(streamOf(value)) === null,
      defaultMessage: (args) =>
        (typeof args?.value === 'string' ? problemOf(streamOf(args.value)) : null) ?? `${args?.property} must be a string`,
    },
  });

/** The name of a readable stream. */
export const IsReadableStream = (): PropertyDecorator => isStream('isReadableStream', readableStreamProblem);

/** The name of a stream that can be subscribed to. */
export const IsSubscribableStream = (): PropertyDecorator => isStream('isSubscribableStream', eventNameProblem);

/** An event id in a path. */
@Injectable()
export class EventIdPipe implements PipeTransform<string> {
  transform(value: string): string {
    if (!parseEventId(value))
      throw new Invalid([{ field: 'event_id', message: 'event_id must be an event id, <milliseconds>-<sequence>' }]);
    return value;
  }
}
