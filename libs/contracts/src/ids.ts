import { randomBytes } from 'node:crypto';
import { applyDecorators } from '@nestjs/common';
import { Matches } from 'class-validator';

const prefixes = {
  user: 'u_',
  component: 'sc_',
  source: 'dc_',
  workflow: 'p_',
  webhook: 'wh_',
  subscription: 'sub_',
  autoSubscription: 'asub_',
  apiKey: 'key_',
  delivery: 'del_',
  replay: 'rpl_',
  connection: 'apn_',
} as const;

export type IdKind = keyof typeof prefixes;
export type Id<K extends IdKind> = `${(typeof prefixes)[K]}${string}`;
export type UserId = Id<'user'>;
export type ComponentId = Id<'component'>;
export type SourceId = Id<'source'>;
export type WorkflowId = Id<'workflow'>;
export type WebhookId = Id<'webhook'>;
export type SubscriptionId = Id<'subscription'>;
/** The id of an emitter. */
export type EmitterId = SourceId | WorkflowId;
/** The id of a listener. */
export type ListenerId = SourceId | WorkflowId | WebhookId;

/** Digits in byte order, so that ids of one length sort as their numbers do. */
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const TIME_LENGTH = 8;
const RANDOM_LENGTH = 10;

/** The number as base-62 text of a fixed length, most significant digit first. */
export function base62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = DIGITS[Number(rest % 62n)] + text;
  return text;
}

/** The number that `base62` has written. */
export const fromBase62 = (text: string): bigint => [...text].reduce((value, digit) => value * 62n + BigInt(DIGITS.indexOf(digit)), 0n);

/** Unguessable base-62 text (5.95 bits a character), for endpoint keys and API keys. */
export function randomText(length: number): string {
  const bytes = randomBytes(length * 2);
  let text = '';
  for (let i = 0; i < length; i++) text += DIGITS[bytes.readUInt16BE(i * 2) % 62];
  return text;
}

let lastMs = 0;
let lastRandom = 0n;

/**
 * A new id: the prefix, the time in ms and random digits. Ids from one process sort by creation time, even within one
 * millisecond and after the clock steps back. Ids from several processes do so to the extent that their clocks agree.
 */
export function newId<K extends IdKind>(kind: K): Id<K> {
  const now = Date.now();
  if (now > lastMs) {
    lastMs = now;
    lastRandom = BigInt(`0x${randomBytes(7).toString('hex')}`);
  } else {
    lastRandom += 1n + BigInt(randomBytes(2).readUInt16BE());
  }
  return composed(kind, lastMs, lastRandom);
}

/** The id of this time in ms and the first 7 of these bytes, in the form of `newId`. */
export const idFrom = <K extends IdKind>(kind: K, atMs: number, bytes: Buffer): Id<K> =>
  composed(kind, atMs, BigInt(`0x${bytes.toString('hex', 0, 7)}`));

const composed = <K extends IdKind>(kind: K, ms: number, random: bigint): Id<K> =>
  `${prefixes[kind]}${base62(BigInt(ms), TIME_LENGTH)}${base62(random, RANDOM_LENGTH)}` as Id<K>;

/** When `newId` made the id, in ms. */
export const timeOfId = (id: Id<IdKind>): number => Number(fromBase62(id.slice(id.indexOf('_') + 1).slice(0, TIME_LENGTH)));

const patterns = Object.fromEntries(
  Object.entries(prefixes).map(([kind, prefix]) => [kind, new RegExp(`^${prefix}[A-Za-z0-9]{1,64}$`)]),
) as Record<IdKind, RegExp>;

/** Whether the text has the shape of an id of this kind. The resource need not exist. */
export function isId<K extends IdKind>(kind: K, text: unknown): text is Id<K> {
  return typeof text === 'string' && patterns[kind].test(text);
}

export const isEmitterId = (text: unknown): text is EmitterId => isId('source', text) || isId('workflow', text);
export const isListenerId = (text: unknown): text is ListenerId => isEmitterId(text) || isId('webhook', text);

export const kindOfId = (id: ListenerId): 'source' | 'workflow' | 'webhook' =>
  isId('source', id) ? 'source' : isId('workflow', id) ? 'workflow' : 'webhook';

/** Validates a payload's field as an id of one of these kinds. */
export function IsId(...kinds: IdKind[]): PropertyDecorator {
  const source = kinds.map((kind) => `${prefixes[kind]}[A-Za-z0-9]{1,64}`).join('|');
  return applyDecorators(Matches(new RegExp(`^(?:${source})$`), { message: `$property must be the id of a ${kinds.join(' or ')}` }));
}

/** KSUID's epoch: 2014-05-13T16:53:20Z, in Unix seconds (segmentio/ksuid). */
const EPOCH_S = 1_400_000_000;

let drawn = Buffer.alloc(0);

/** Random bytes, drawn from the system in large pieces, because each draw costs microseconds. */
function someRandomBytes(length: number): Buffer {
  if (drawn.length < length) drawn = randomBytes(4096);
  const piece = drawn.subarray(0, length);
  drawn = drawn.subarray(length);
  return piece;
}

/** A KSUID, 27 base-62 characters: 32 bits of seconds since its epoch, 0 before it, and 128 random bits, or the 16 given bytes. */
export function ksuid(atMs: number = Date.now(), random: Buffer = someRandomBytes(16)): string {
  const seconds = BigInt(Math.max(0, Math.floor(atMs / 1000) - EPOCH_S));
  return base62((seconds << 128n) | BigInt(`0x${random.toString('hex')}`), 27);
}
