import { Migration } from '#database';

export class IndexQueuedHooks1798732800021 extends Migration {
  readonly sql = `
    -- "the next hooks of an account": while it is full, its other runs wait
    CREATE INDEX queued_run_hook ON queued_run (account_id, seq) WHERE hook;`;
}
