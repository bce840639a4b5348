import { Migration } from '#database';

export class NoteRestores1796947200006 extends Migration {
  readonly sql = 'CREATE TABLE restore (id uuid PRIMARY KEY)';
}
