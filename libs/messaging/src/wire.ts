import { type ErrorCode, SluiceError } from '#contracts';

/** The headers of messages between services. */
export const HEADER = {
  /** On a request: the name of its command or query. */
  message: 'message',
  /** On a request and on its reply. */
  correlationId: 'correlation-id',
  /** The topic for the reply. */
  replyTo: 'reply-to',
  /** When the sender stops waiting, in ms: a request that is read later is not carried out. */
  deadline: 'deadline',
  /** The id of the REST request that caused the message. */
  requestId: 'request-id',
  /** On a request and on its reply: the value is encrypted. */
  sealed: 'sealed',
  /** On a reply that is larger than a record: which part of it this is (reply-parts.ts). */
  part: 'part',
  /** On a reply: the error instead of a result. */
  error: 'error',
} as const;

/** The context to which the value of a sealed request and its reply is bound (libs/secrets). */
export const requestContext = (correlationId: string): string => `request ${correlationId}`;
export const replyContext = (correlationId: string): string => `reply ${correlationId}`;

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
