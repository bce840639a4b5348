import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';

const PREFIX = 'sealed';
const ALGORITHM = 'aes-256-gcm';
/** The size that GCM is designed for (NIST SP 800-38D, 8.2): 96 random bits, for at most 2^32 values per key. */
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** A signature may come from a stranger. */
const MAX_SIGNATURES = 10;

/** The configured keys do not fit the data. The message is one line for the operator. */
export class SecretsKeyProblem extends Error {
  override readonly name = 'SecretsKeyProblem';
}

export const isSealed = (text: unknown): text is string => typeof text === 'string' && text.startsWith(`${PREFIX}:`);

/**
 * Encrypts texts under the first key, and decrypts them under any.
 *
 *     sealed:<first 8 hex digits of the key's SHA-256>:<base64 of IV, tag and ciphertext>
 *
 * context: what the value belongs to, such as `source dc_123`. The value opens only with the same context.
 */
export class SecretBox {
  private readonly keys: { id: string; key: KeyObject; signing: KeyObject }[];

  constructor(keys: readonly Buffer[]) {
    this.keys = keys.map((bytes) => ({
      id: createHash('sha256').update(bytes).digest('hex').slice(0, 8),
      key: createSecretKey(bytes),
      // one key for each purpose (RFC 5869)
      signing: createSecretKey(Buffer.from(hkdfSync('sha256', bytes, '', 'sluice signature', 32))),
    }));
  }

  seal(text: string, context: string): string {
    const [first] = this.keys;
    if (!first) throw new SecretsKeyProblem('SLUICE_SECRETS_KEY contains no key');
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(ALGORITHM, first.key, iv, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(context));
    const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return `${PREFIX}:${first.id}:${Buffer.concat([iv, cipher.getAuthTag(), encrypted]).toString('base64')}`;
  }

  /** @throws SecretsKeyProblem if the key is missing, or the value was changed or belongs elsewhere */
  open(sealed: string, context: string): string {
    const [, id, data = ''] = sealed.split(':');
    const known = this.keys.find((each) => each.id === id);
    if (!known)
      throw new SecretsKeyProblem(
        `SLUICE_SECRETS_KEY does not contain the key ${id}, which encrypted the secrets of ${context}; add this key to the list, or restore the right one`,
      );
    const bytes = Buffer.from(data, 'base64');
    try {
      const decipher = createDecipheriv(ALGORITHM, known.key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
        .setAAD(Buffer.from(context))
        .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8');
    } catch {
      throw new SecretsKeyProblem(`the secrets of ${context} cannot be decrypted: they were changed, or copied from somewhere else`);
    }
  }

  /**
   * A signature of the text (HMAC-SHA256), valid only with the same context: `<id of the key>:<base64url>`, under each key and separated by commas. While
   * a key is being replaced, a process that does not have the new one yet must be able to verify it.
   */
  sign(text: Buffer, context: string): string {
    if (this.keys.length === 0) throw new SecretsKeyProblem('SLUICE_SECRETS_KEY contains no key');
    return this.keys.map(({ id, signing }) => `${id}:${digestOf(signing, text, context).toString('base64url')}`).join(',');
  }

  /** Whether the text is signed under one of the keys. */
  verifies(signature: string, text: Buffer, context: string): boolean {
    return signature.split(',', MAX_SIGNATURES).some((one) => {
      const [id, digest = ''] = one.split(':');
      const known = this.keys.find((each) => each.id === id);
      const given = Buffer.from(digest, 'base64url');
      const expected = known && digestOf(known.signing, text, context);
      return expected !== undefined && given.length === expected.length && timingSafeEqual(given, expected);
    });
  }

  /** Whether the value is encrypted under the first key, so that the others are not needed for it. */
  isCurrent(sealed: string): boolean {
    return sealed.startsWith(`${PREFIX}:${this.keys[0]?.id}:`);
  }
}

const digestOf = (key: KeyObject, text: Buffer, context: string): Buffer =>
  createHmac('sha256', key)
    .update(`${Buffer.byteLength(context)}:${context}`)
    .update(text)
    .digest();
