import { randomBytes } from 'node:crypto';
import { base62 } from './ids.js';

/** KSUID's epoch: 2014-05-13T16:53:20Z, in Unix seconds (segmentio/ksuid). */
const EPOCH_S = 1_400_000_000;

/** A KSUID, 27 base-62 characters: 32 bits of seconds since its epoch and 128 random bits, or the 16 given bytes. */
export function ksuid(atMs: number = Date.now(), random: Buffer = randomBytes(16)): string {
  const seconds = BigInt(Math.floor(atMs / 1000) - EPOCH_S);
  return base62((seconds << 128n) | BigInt(`0x${random.toString('hex')}`), 27);
}
