import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import type { WebhookId } from '#contracts';
import { isSealed, type SecretBox } from '#secrets';

const PREFIX = 'whsec_';
/** Standard Webhooks requires 24 to 64 random bytes. */
const BYTES = 32;

/** A new signing secret as Standard Webhooks writes them: `whsec_` and base64. */
export const newSigningSecret = (): string => PREFIX + randomBytes(BYTES).toString('base64');

/** The context that a webhook's secrets are bound to. */
export const secretContext = (id: string): string => `webhook ${id}`;

/** As the column stores it. */
export const sealedSecret = (box: SecretBox, id: WebhookId, secret: string): string => box.seal(secret, secretContext(id));

/** From the column; versions before the encryption stored the secret itself. */
export const openedSecret = (box: SecretBox, id: WebhookId, stored: string): string =>
  isSealed(stored) ? box.open(stored, secretContext(id)) : stored;

/** The key to sign with. With bytes instead of a KeyObject, each signature would create a KeyObject, which takes ten times as long. */
export const keyOfSecret = (secret: string): KeyObject => createSecretKey(secret.slice(PREFIX.length), 'base64');
