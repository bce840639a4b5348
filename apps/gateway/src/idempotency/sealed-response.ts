import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';

/** The configuration of a route whose response contains a secret that is stored nowhere else. */
export const SECRET_RESPONSE = { secretResponse: true };

export const hasSecretResponse = ({ routeOptions }: FastifyRequest): boolean =>
  (routeOptions.config as Partial<typeof SECRET_RESPONSE> | undefined)?.secretResponse === true;

const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts a response that is stored for repeated requests, so that only a caller with the same API key can read it. The key is not stored, so neither
 * the database nor its backups reveal the secret.
 */
export function seal(response: string, apiKey: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', keyFrom(apiKey), iv);
  const sealed = Buffer.concat([cipher.update(response, 'utf8'), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64');
}

/** The response; undefined if another API key sealed it. */
export function unseal(text: string, apiKey: string): string | undefined {
  const bytes = Buffer.from(text, 'base64');
  const decipher = createDecipheriv('aes-256-gcm', keyFrom(apiKey), bytes.subarray(0, IV_BYTES));
  decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}

const keyFrom = (apiKey: string): Buffer => Buffer.from(hkdfSync('sha256', apiKey, '', 'sluice idempotent answer', 32));
