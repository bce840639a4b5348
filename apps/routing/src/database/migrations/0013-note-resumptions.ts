import { Migration } from '#database';

export class NoteResumptions1797811200001 extends Migration {
  readonly sql = `ALTER TABLE webhook ADD COLUMN resumed_at timestamptz`;
}
