import { Migration } from '#database';
import { countRows } from '#waiting-data';

export class CountWaitingData1796947200009 extends Migration {
  readonly sql = `
    -- of the requests, as text: the size of a jsonb value depends on whether it is compressed
    ALTER TABLE queued_run ADD COLUMN bytes integer NOT NULL DEFAULT 0;
    UPDATE queued_run SET bytes = octet_length(request::text);
    ALTER TABLE retried_run ADD COLUMN bytes integer NOT NULL DEFAULT 0;
    UPDATE retried_run SET bytes = octet_length(request::text);
    ${countRows({ table: 'queued_run', holder: 'account_id', bytes: (row) => `${row}bytes` })}
    ${countRows({ table: 'retried_run', holder: "coalesce(account_id, '')", bytes: (row) => `${row}bytes` })}
    ${countRows({ table: 'waiting_emit', holder: "coalesce(account_id, '')", bytes: (row) => `octet_length(${row}value)` })}`;
}
