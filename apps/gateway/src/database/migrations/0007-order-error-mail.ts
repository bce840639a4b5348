import { Migration } from '#database';

export class OrderErrorMail1798560000003 extends Migration {
  readonly sql = `
    -- Accounts take turns: the sender steps from account to account.
    CREATE INDEX error_mail_turn ON error_mail (account_id, due_at);`;
}
