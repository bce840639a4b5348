import { Migration } from '#database';

/** Until a webhook is switched for the next time, its last change stands for both times, as before. */
export class NoteSwitchesOfWebhooks1797897600004 extends Migration {
  readonly sql = `
    ALTER TABLE webhook ADD COLUMN activated_at timestamptz NOT NULL DEFAULT now(), ADD COLUMN deactivated_at timestamptz NOT NULL DEFAULT now();
    UPDATE webhook SET activated_at = updated_at, deactivated_at = updated_at`;
}
