import { hash } from 'node:crypto';
import { type EmittedEvent, ERRORS_STREAM, errorRaised, eventIdOf, keepableText, type UserId } from '#contracts';
import { recordOf, type OutgoingRecord } from '#messaging';

const MESSAGE_LENGTH = 500;
const CODE_LENGTH = 128;

/** The fact of an event on `$errors`, from which its owner gets a mail; undefined for any other event. */
export function errorFact(event: EmittedEvent, ownerId: UserId): OutgoingRecord | undefined {
  if (event.stream !== ERRORS_STREAM) return undefined;
  const { code, message } = summaryOf(JSON.parse(event.json.toString('utf8')));
  const fact = {
    // made of the emit: a producer's retry raises no second error
    id: hash('sha256', `${event.emitterId}\n${event.emitId}`, 'hex').slice(0, 32),
    owner_id: ownerId,
    subject_id: event.emitterId,
    code,
    message,
    event_id: eventIdOf(event.place),
    raised_at_ms: event.place.ms,
  };
  return recordOf(errorRaised, fact, ownerId);
}

/** The code and a line of the error; an outside producer may have put anything there. */
function summaryOf(report: unknown): { code: string; message: string } {
  const error = memberOf(report, 'error') ?? report;
  const text = (name: string): string | undefined => {
    const value = memberOf(error, name);
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const message = text('message') ?? text('stack')?.split('\n')[0] ?? (typeof error === 'string' ? error : JSON.stringify(report));
  const code = text('code') ?? text('name') ?? 'Error';
  return { code: keepableText(code.slice(0, CODE_LENGTH)), message: keepableText(message.slice(0, MESSAGE_LENGTH)) };
}

const memberOf = (value: unknown, name: string): unknown =>
  value !== null && typeof value === 'object' ? (value as Record<string, unknown>)[name] : undefined;
