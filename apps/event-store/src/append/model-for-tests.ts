import { comparePlaces, coversStream, type EventPlace, KEPT_EVENTS, WAITING_STREAM } from '#events';
import type { Operation } from './replay.js';

/** The stored events by `emitter stream`, oldest first. */
export type Model = Map<string, { place: EventPlace; emitId: string }[]>;

/** The clock steps back to `ms`: events from `from` on move to before it, in their order. */
export function stepBack(model: Model, emitters: readonly string[], { from, ms }: { from: number; ms: number }): void {
  for (const [key, events] of model) {
    if (!emitters.includes(key.split(' ')[0] ?? '') || !events.some(({ place }) => place.ms >= from)) continue;
    const last = events.length - 1;
    model.set(
      key,
      events.map((event, index) => ({ ...event, place: { ...event.place, ms: Math.min(event.place.ms, ms - 1 - (last - index)) } })),
    );
  }
}

/** A model of the store in ten lines: applies one operation of the log, and returns the emits that it withdraws, each as `emitter emit`. */
export function apply(model: Model, operation: Operation): string[] {
  const streams = [...model.keys()].filter((key) => key.startsWith(`${operation.emitterId} `));
  const keep = (key: string, condition: (event: { place: EventPlace; emitId: string }) => boolean) =>
    model.set(key, (model.get(key) ?? []).filter(condition));
  if (operation.kind === 'delete') {
    const { emitterId, stream, start, end } = operation;
    const outside = ({ place }: { place: EventPlace }) =>
      Boolean((start && comparePlaces(place, start) < 0) || (end && comparePlaces(place, end) > 0));
    const waiting = stream === null || stream === WAITING_STREAM ? (model.get(`${emitterId} ${WAITING_STREAM}`) ?? []) : [];
    for (const key of streams) if (stream === null || coversStream(stream, key.slice(emitterId.length + 1))) keep(key, outside);
    return waiting.filter((event) => !outside(event)).map(({ emitId }) => `${emitterId} ${emitId}`);
  }
  const { emitterId, stream, emitId, place, waited } = operation;
  if (waited) keep(`${emitterId} ${WAITING_STREAM}`, (event) => event.emitId !== emitId);
  const events = model.get(`${emitterId} ${stream}`) ?? [];
  if (events.some((event) => event.emitId === emitId)) return [];
  model.set(`${emitterId} ${stream}`, [...events, { place, emitId }].sort((a, b) => comparePlaces(a.place, b.place)).slice(-KEPT_EVENTS));
  return [];
}
