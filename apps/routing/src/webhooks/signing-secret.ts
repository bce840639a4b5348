import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';
/** Standard Webhooks asks for 24 to 64 random bytes. */
const BYTES = 32;

/** A new signing secret as Standard Webhooks writes them: `whsec_` and base64. */
export const newSigningSecret = (): string => PREFIX + randomBytes(BYTES).toString('base64');

/** What to sign with. A KeyObject and not its bytes: with these each signature makes one of its own, which takes ten times as long. */
export const keyOfSecret = (secret: string): KeyObject => createSecretKey(secret.slice(PREFIX.length), 'base64');
