import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { base62, randomText } from '#contracts';

const PREFIX = 'slk_';
const SECRET_LENGTH = 32;
const CHECKSUM_LENGTH = 6;
const SHOWN_LENGTH = 8;

/** A new API key: `slk_`, 32 random base-62 characters (190 bits), and a CRC-32 by which scanners and Sluice recognise a typo. */
export function newApiKey(): string {
  const secret = randomText(SECRET_LENGTH);
  return `${PREFIX}${secret}${checksum(secret)}`;
}

/** Whether the text has our prefix but is malformed. A key without the prefix is one that the operator chose. */
export function isMistypedKey(text: string): boolean {
  if (!text.startsWith(PREFIX)) return false;
  const body = text.slice(PREFIX.length);
  return body.length !== SECRET_LENGTH + CHECKSUM_LENGTH || checksum(body.slice(0, SECRET_LENGTH)) !== body.slice(SECRET_LENGTH);
}

/** Completes a sentence that begins with the name of the variable. */
export const MISTYPED =
  'has our prefix slk_ but a wrong length or checksum, so it contains a typo; correct it, or choose a key with another prefix';

/** The stored form of a key. A key has more entropy than a password, so a plain hash is enough. */
export const apiKeyHash = (key: string): Buffer => createHash('sha256').update(key, 'utf8').digest();

/** The part of a key that may be shown to identify it: less than half of a short one that the operator chose. */
export const apiKeyPrefix = (key: string): string => key.slice(0, Math.min(SHOWN_LENGTH, Math.floor(key.length / 3)));

const checksum = (secret: string): string => base62(BigInt(crc32(secret)), CHECKSUM_LENGTH);
