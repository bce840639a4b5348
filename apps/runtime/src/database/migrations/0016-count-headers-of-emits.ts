import { Migration } from '#database';
import { changeCountedSize } from '#waiting-data';

export class CountHeadersOfEmits1798992000005 extends Migration {
  readonly sql = `
    ALTER TABLE waiting_emit ADD COLUMN bytes integer;
    ${changeCountedSize({ table: 'waiting_emit', holder: "coalesce(account_id, '')", bytes: (row) => `coalesce(${row}bytes, octet_length(${row}value))` })}`;
}
