import { Migration } from '#database';

export class QueueErrorMail1798560000001 extends Migration {
  readonly sql = `
    -- Mails about errors that are not sent yet. The table error_notice counts them as sent.
    CREATE TABLE error_mail (
      -- of the error
      id         text COLLATE "C" PRIMARY KEY,
      account_id text COLLATE "C" NOT NULL,
      error      jsonb NOT NULL,
      -- errors of the same kind since the previous mail
      since      int NOT NULL,
      -- the account gets no further mail for now
      is_last    boolean NOT NULL,
      -- while a gateway sends it: when its lease expires
      due_at     timestamptz NOT NULL DEFAULT now(),
      attempts   int NOT NULL DEFAULT 0,
      created_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX error_mail_due ON error_mail (due_at);`;
}
