import { randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';
/** Standard Webhooks asks for 24 to 64 random bytes. */
const BYTES = 32;

/** A new signing secret as Standard Webhooks writes them: `whsec_` and base64. */
export const newSigningSecret = (): string => PREFIX + randomBytes(BYTES).toString('base64');

/** The bytes to sign with. */
export const keyOfSecret = (secret: string): Buffer => Buffer.from(secret.slice(PREFIX.length), 'base64');
