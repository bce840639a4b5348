import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';
/** Standard Webhooks requires 24 to 64 random bytes. */
const BYTES = 32;

/** A new signing secret as Standard Webhooks writes them: `whsec_` and base64. */
export const newSigningSecret = (): string => PREFIX + randomBytes(BYTES).toString('base64');

/** The key to sign with. With bytes instead of a KeyObject, each signature would create a KeyObject, which takes ten times as long. */
export const keyOfSecret = (secret: string): KeyObject => createSecretKey(secret.slice(PREFIX.length), 'base64');
