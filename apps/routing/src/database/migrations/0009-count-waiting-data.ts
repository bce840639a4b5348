import { Migration } from '#database';
import { countRows } from '#waiting-data';

export class CountWaitingData1796947200008 extends Migration {
  readonly sql = `
    -- for once, whole tables are read
    SET LOCAL enable_seqscan = on;
    ${countRows({
      table: 'parked_delivery',
      holder: 'webhook_id',
      // an attempt has up to a kilobyte of the response
      bytes: (row) => `octet_length(${row}body) + coalesce(octet_length(${row}context), 0) + octet_length(${row}attempts::text)`,
    })}
    ${countRows({
      table: 'postponed_event',
      holder: 'owner_id',
      bytes: (row) => `octet_length(${row}value) + octet_length(${row}headers)`,
    })}`;
}
