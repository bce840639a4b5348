import type { KeyObject } from 'node:crypto';
import type { UserId, WebhookId } from '#contracts';
import type { SecretBox } from '#secrets';
import { keyOfSecret, openedSecret } from './signing-secret.js';

/**
 * How a new delivery to a webhook is handled:
 * - `direct`: it is attempted at once, from memory
 * - `spilled`: it is parked, and delivered from the backlog in order
 * - `closing`: it waits in memory for a moment, because the backlog is about to be empty
 */
export type Mode = 'direct' | 'spilled' | 'closing';

/** A webhook as deliveries see it. */
export interface Target {
  id: WebhookId;
  ownerId: UserId;
  /** The version of the webhook; if a newer one is known, the webhook is read again. */
  version: number;
  active: boolean;
  mode: Mode;
  /** Deliveries per second. */
  rateLimit: number | null;
  origin: string;
  path: string;
  /** From a user name and password in the URL. */
  authorization?: string;
  /** To sign with, the newest first; `until` in ms. */
  keys: { key: KeyObject; until: number }[];
}

export interface TargetRow {
  id: WebhookId;
  owner_id: UserId;
  version: number;
  active: boolean;
  mode: Mode;
  rate_limit: number | null;
  url: string;
  secret: string;
  previous_secret: string | null;
  previous_secret_expires_at: Date | null;
}

export function targetOf(row: TargetRow, box: SecretBox): Target {
  const url = new URL(row.url);
  const keyOf = (stored: string) => keyOfSecret(openedSecret(box, row.id, stored));
  const keys = [{ key: keyOf(row.secret), until: Infinity }];
  if (row.previous_secret !== null) keys.push({ key: keyOf(row.previous_secret), until: row.previous_secret_expires_at?.getTime() ?? 0 });
  return {
    id: row.id,
    ownerId: row.owner_id,
    version: row.version,
    active: row.active,
    mode: row.mode,
    rateLimit: row.rate_limit,
    origin: url.origin,
    path: url.pathname + url.search,
    authorization: basicAuthorization(url),
    keys,
  };
}

function basicAuthorization({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined;
  return `Basic ${Buffer.from(`${decoded(username)}:${decoded(password)}`).toString('base64')}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // a lone % is one
    return text;
  }
}
