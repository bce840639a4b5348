import { hash, randomBytes } from 'node:crypto';
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

/** The key to sign with. */
export const keyOfSecret = (secret: string): SigningKey => new SigningKey(Buffer.from(secret.slice(PREFIX.length), 'base64'));

/** Of SHA-256, in bytes. */
const [BLOCK, DIGEST] = [64, 32];

/**
 * A key of HMAC-SHA256 (RFC 2104). The two hashes are one call each: `createHmac` creates a stream for each signature, which takes about twice as long
 * while deliveries are made.
 */
export class SigningKey {
  private readonly inner = Buffer.alloc(BLOCK, 0x36);
  private readonly outer = Buffer.alloc(BLOCK + DIGEST, 0x5c);

  constructor(secret: Buffer) {
    const key = secret.length > BLOCK ? hash('sha256', secret, 'buffer') : secret;
    for (const [index, byte] of key.entries()) {
      this.inner[index]! ^= byte;
      this.outer[index]! ^= byte;
    }
  }

  /** The HMAC of these bytes, one behind the other, in base64. */
  sign(...parts: Buffer[]): string {
    hash('sha256', Buffer.concat([this.inner, ...parts]), 'buffer').copy(this.outer, BLOCK);
    return hash('sha256', this.outer, 'base64');
  }
}
