import { Migration } from '#database';

export class NoteRemovedComponents1799251200001 extends Migration {
  readonly sql = `
    ALTER TABLE component ADD COLUMN removed boolean NOT NULL DEFAULT false;
    UPDATE component SET removed = true
    WHERE owner_id IS NULL AND NOT EXISTS (SELECT FROM component AS other WHERE other.registered AND other.key = component.key)`;
}
