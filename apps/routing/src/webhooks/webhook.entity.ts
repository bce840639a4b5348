import type { UserId, Webhook, WebhookId, WebhookSecret } from '#contracts';

export interface WebhookRow {
  id: WebhookId;
  owner_id: UserId;
  name: string | null;
  description: string | null;
  url: string;
  active: boolean;
  /** Deliveries per second; null: no limit. */
  rate_limit: number | null;
  created_at: Date;
  updated_at: Date;
}

export interface SecretRow {
  secret: string;
  /** Only while it signs too. */
  previous_secret_expires_at: Date | null;
}

const unixSeconds = (date: Date): number => Math.floor(date.getTime() / 1000);

/** As the API answers it; in lists without its owner. */
export const webhookOf = (row: WebhookRow, { inList = false } = {}): Webhook => ({
  id: row.id,
  ...(inList ? {} : { user_id: row.owner_id }),
  name: row.name,
  description: row.description,
  url: row.url,
  active: row.active,
  ...(row.rate_limit === null ? {} : { rate_limit: row.rate_limit }),
  created_at: unixSeconds(row.created_at),
  updated_at: unixSeconds(row.updated_at),
});

export const secretOf = (row: SecretRow): WebhookSecret => ({
  secret: row.secret,
  ...(row.previous_secret_expires_at === null ? {} : { previous_expires_at: unixSeconds(row.previous_secret_expires_at) }),
});
