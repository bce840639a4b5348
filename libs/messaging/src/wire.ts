import { type ErrorCode, SluiceError } from '#contracts';

/** The headers of our own messages. */
export const HEADER = {
  /** Of a request: the name of its command or query. */
  message: 'message',
  /** Of a request and of its reply. */
  correlationId: 'correlation-id',
  /** Where the reply is wanted. */
  replyTo: 'reply-to',
  /** When the asker stops waiting, in ms: a request that is found later isn't carried out any more. */
  deadline: 'deadline',
  /** The REST request that all of this is for. */
  requestId: 'request-id',
  /** On a reply: the error instead of an answer. */
  error: 'error',
} as const;

interface ErrorOnTheWire {
  code: ErrorCode;
  message: string;
  details: SluiceError['details'];
}

export const errorToWire = (error: SluiceError): string =>
  JSON.stringify({ code: error.code, message: error.message, details: error.details } satisfies ErrorOnTheWire);

export function errorFromWire(text: string): SluiceError {
  const { code, message, details } = JSON.parse(text) as ErrorOnTheWire;
  return new SluiceError(code, message, details);
}
