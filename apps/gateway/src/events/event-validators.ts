import { Injectable, type PipeTransform } from '@nestjs/common';
import { ValidateBy } from 'class-validator';
import {
  comparePlaces,
  eventNameProblem,
  notAnEventId,
  parseEventId,
  readableStreamProblem,
  requireEventId,
  streamOf,
  subscribedEmitterProblem,
  subscribedListenerProblem,
} from '#events';

/** The id of an event, which need not exist. `orEmpty`: a cursor, which may be empty; that counts as absent. */
export const IsEventId = ({ orEmpty = false } = {}): PropertyDecorator =>
  ValidateBy({
    name: 'isEventId',
    validator: {
      validate: (value: unknown) => typeof value === 'string' && ((orEmpty && value === '') || parseEventId(value) !== null),
      defaultMessage: (args) => notAnEventId(args?.property ?? ''),
    },
  });

/** The id of an event that is not before the one in another field. */
export const IsNotBefore = (field: string): PropertyDecorator =>
  ValidateBy({
    name: 'isNotBefore',
    validator: {
      validate: (value: unknown, args) => {
        const { object } = args as { object: object };
        const [first, last] = [(object as Record<string, unknown>)[field], value].map((id) => parseEventId(String(id)));
        // a malformed id has its own problem
        return !first || !last || comparePlaces(first, last) <= 0;
      },
      defaultMessage: (args) => `${args?.property} must not be before ${field}`,
    },
  });

/** A string in which `problemOf` finds no problem. */
const withoutProblem = (name: string, problemOf: (value: string) => string | null): PropertyDecorator =>
  ValidateBy({
    name,
    validator: {
      validate: (value: unknown) => typeof value === 'string' && problemOf(value) === null,
      defaultMessage: (args) => {
        const { value, property } = args as { value: unknown; property: string };
        if (value === undefined || value === null) return `${property} is required`;
        return typeof value === 'string' ? (problemOf(value) ?? '') : `${property} must be a string`;
      },
    },
  });

/** The name of a readable stream. */
export const IsReadableStream = (): PropertyDecorator =>
  withoutProblem('isReadableStream', (name) => readableStreamProblem(streamOf(name)));

/** The name of a stream that can be subscribed to. */
export const IsSubscribableStream = (): PropertyDecorator =>
  withoutProblem('isSubscribableStream', (name) => eventNameProblem(streamOf(name)));

/** The emitter of a subscription, or a pattern of several. It need not exist. */
export const IsSubscribableEmitter = (): PropertyDecorator => withoutProblem('isSubscribableEmitter', subscribedEmitterProblem);

/** The id of a listener, which need not exist. */
export const IsSubscribingListener = (): PropertyDecorator => withoutProblem('isSubscribingListener', subscribedListenerProblem);

/** An event id in a path. */
@Injectable()
export class EventIdPipe implements PipeTransform<string> {
  transform(value: string): string {
    requireEventId(value);
    return value;
  }
}
