import { Migration } from '#database';

export class KeepPreviousSecrets1795996800000 extends Migration {
  readonly sql = `
    -- each secret that signs beside that of the webhook until it expires
    CREATE TABLE previous_secret (
      webhook_id  text COLLATE "C" NOT NULL,
      -- the rotation that replaced it
      rotation_id text COLLATE "C" NOT NULL,
      secret      text NOT NULL,
      expires_at  timestamptz NOT NULL,
      PRIMARY KEY (webhook_id, rotation_id)
    );
    INSERT INTO previous_secret
      SELECT id, rotation_id, previous_secret, previous_secret_expires_at FROM webhook WHERE previous_secret_expires_at > now();
    ALTER TABLE webhook DROP COLUMN previous_secret, DROP COLUMN previous_secret_expires_at;`;
}
